package apiserver

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

func TestWhatEtcdsClientSaysGoesToTheLogAndNotToTheTerminal(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	s, err := Start(t.Context(), Options{Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.etcd.etcd.Server.Stop() // the client complains
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if _, err := client.CoreV1().Pods("default").Get(short, "p", metav1.GetOptions{}); err == nil {
			return false, errors.New("a read succeeded without etcd")
		}
		return logs.FilterMessage("etcd client").Len() > 0, nil
	})
	if err != nil {
		t.Errorf("nothing from etcd's client was logged: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}
