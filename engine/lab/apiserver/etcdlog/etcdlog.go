package etcdlog

import (
	"fmt"
	"net/url"
	"sync/atomic"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	"go.uber.org/zap"
)

const scheme = "kconverge-etcd"

var target atomic.Pointer[zap.Logger]

func init() {
	if err := zap.RegisterSink(scheme, func(*url.URL) (zap.Sink, error) { return sink{}, nil }); err != nil {
		panic(fmt.Sprintf("registering the log sink %s: %v", scheme, err)) // a name taken twice in one program
	}
	out := []string{scheme + ":client"}
	logutil.DefaultZapLoggerConfig.OutputPaths, logutil.DefaultZapLoggerConfig.ErrorOutputPaths = out, out
}

// To sends what etcd's clients log in this process to log from now on; nothing
// is kept before the first call. Safe for concurrent use.
func To(log *zap.Logger) { target.Store(log) }

type sink struct{}

// Write implements io.Writer; p is one entry in JSON.
func (sink) Write(p []byte) (int, error) {
	if log := target.Load(); log != nil {
		log.Info("etcd client", zap.ByteString("entry", p))
	}
	return len(p), nil
}

// Sync implements zap.Sink.
func (sink) Sync() error { return nil }

// Close implements zap.Sink.
func (sink) Close() error { return nil }
