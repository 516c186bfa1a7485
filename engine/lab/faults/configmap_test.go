package faults

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/kconverge/kconverge/collect"
)

// kept is an API server's one ConfigMap, and what happens between a write of it and
// the answer.
type kept struct {
	cm      *corev1.ConfigMap
	version int
	between func(*corev1.ConfigMap)
}

func newKept() *kept {
	k := &kept{cm: newConfigMap(nil), version: 1}
	k.cm.ResourceVersion = "1"
	return k
}

// client is one of its clients: a fake one does one thing at a time.
func (k *kept) client() *fake.Clientset {
	c := fake.NewClientset()
	c.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) { return true, k.cm.DeepCopy(), nil })
	c.PrependReactor("update", "configmaps", func(a k8stesting.Action) (bool, runtime.Object, error) {
		written := k.write(a.(k8stesting.UpdateAction).GetObject().(*corev1.ConfigMap).Data)
		if then := k.between; then != nil {
			k.between = nil
			then(written)
		}
		return true, written, nil
	})
	return c
}

func (k *kept) write(data map[string]string) *corev1.ConfigMap {
	k.version++
	k.cm = k.cm.DeepCopy()
	k.cm.Data, k.cm.ResourceVersion = data, strconv.Itoa(k.version)
	return k.cm.DeepCopy()
}

func whose(f *Faults) string {
	var out []string
	for _, a := range f.List() {
		out = append(out, fmt.Sprintf("%s by %s", a, a.By))
	}
	return strings.Join(out, ", ")
}

// TestAFaultIsToldAsWhoseItIs goes through the orders in which a write of this program,
// its answer, the watch, and the writes of others can come.
func TestAFaultIsToldAsWhoseItIs(t *testing.T) {
	set := func(t *testing.T, f *Faults, k *kept, by, text string) {
		t.Helper()
		s, err := Parse(text)
		if err == nil {
			err = f.Set(context.Background(), k.client(), s, by)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		play func(*testing.T, *Faults, *kept)
		want string
	}{
		"the watch brings it before the answer": {func(t *testing.T, f *Faults, k *kept) {
			k.between = f.take
			set(t, f, k, "scenario", "sync-delay=1s@node-1")
		}, "sync-delay=1s@node-1 by scenario"},
		"the watch brings it again afterwards": {func(t *testing.T, f *Faults, k *kept) {
			set(t, f, k, "scenario", "sync-delay=1s@node-1")
			f.take(k.cm)
		}, "sync-delay=1s@node-1 by scenario"},
		"what somebody else wrote just before comes with it": {func(t *testing.T, f *Faults, k *kept) {
			k.write(map[string]string{"sync-fail": "on@node-2"})
			set(t, f, k, "scenario", "sync-delay=1s@node-1")
		}, "sync-delay=1s@node-1 by scenario, sync-fail=on@node-2 by ConfigMap"},
		"somebody else writes before the answer": {func(t *testing.T, f *Faults, k *kept) {
			k.between = func(cm *corev1.ConfigMap) {
				data := map[string]string{"sync-fail": "on@node-2"}
				for name, value := range cm.Data {
					data[name] = value
				}
				f.take(k.write(data))
			}
			set(t, f, k, "scenario", "sync-delay=1s@node-1")
		}, "sync-delay=1s@node-1 by scenario, sync-fail=on@node-2 by ConfigMap"},
		"two of this program write, and the second is answered first": {func(t *testing.T, f *Faults, k *kept) {
			k.between = func(*corev1.ConfigMap) { set(t, f, k, "screen", "sync-fail=on@node-2") }
			set(t, f, k, "scenario", "sync-delay=1s@node-1")
		}, "sync-delay=1s@node-1 by scenario, sync-fail=on@node-2 by screen"},
		"somebody else sets afterwards what was set before": {func(t *testing.T, f *Faults, k *kept) {
			set(t, f, k, "scenario", "sync-delay=1s@node-1")
			f.take(k.write(nil))
			f.take(k.write(map[string]string{"sync-delay": "1s@node-1"}))
		}, "sync-delay=1s@node-1 by ConfigMap"},
	} {
		t.Run(name, func(t *testing.T) {
			f, k := New(Options{OwnPlane: true}), newKept()
			c.play(t, f, k)
			if got := whose(f); got != c.want {
				t.Errorf("in force: %s\nwant:     %s", got, c.want)
			}
		})
	}
}

// TestTheEndOfAFaultIsToldAsWhoseItIs clears one fault while somebody else clears another.
func TestTheEndOfAFaultIsToldAsWhoseItIs(t *testing.T) {
	f, k, h := New(Options{OwnPlane: true}), newKept(), &ends{}
	f.Begin(h)
	k.write(map[string]string{"sync-delay": "1s@node-1; 2s@node-2", "sync-fail": "on"})
	f.take(k.cm)
	k.write(map[string]string{"sync-delay": "1s@node-1; 2s@node-2"})
	if err := f.Set(t.Context(), k.client(), []Setting{{Name: "sync-delay", Amount: "off"}}, "scenario"); err != nil {
		t.Fatal(err)
	}
	want := "sync-delay 1s node-1 by scenario, sync-delay 2s node-2 by scenario, sync-fail on by ConfigMap"
	if got := strings.Join(h.list, ", "); got != want {
		t.Errorf("ended: %s\nwant:  %s", got, want)
	}
}

// ends collects what ended, and by whom.
type ends struct{ list []string }

func (h *ends) Emit(e collect.Event) {
	if f := e.Payload.(*collect.Fault); f.Ended {
		h.list = append(h.list, f.Text()+" by "+f.By)
	}
}
