package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc/grpclog"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kconverge/kconverge/engine/lab/apiserver/etcdlog"
)

// etcd's own sizes are meant for clusters of thousands of nodes. These keep a
// lab small: the log is cut early, and history is dropped early, so memory
// follows what is stored rather than what was ever written.
const (
	walSegmentBytes  = 1 << 20
	backendBytes     = 512 << 20
	snapshotEvery    = 2000
	snapshotCatchUp  = 100
	heartbeatMillis  = 500
	electionMillis   = 2500
	etcdStartTimeout = 20 * time.Second
)

// etcdServer is one etcd in this process, reached by a unix socket in dir.
type etcdServer struct {
	etcd   *embed.Etcd
	client string // client URL
	closed sync.Once
}

// processSettings are etcd and gRPC settings that exist once per process.
var processSettings sync.Once

func startEtcd(ctx context.Context, dir string, log *zap.Logger) (*etcdServer, error) {
	etcdlog.To(log)
	processSettings.Do(func() {
		wal.SegmentSizeBytes = walSegmentBytes
		// gRPC writes errors to the terminal unless told otherwise.
		grpclog.SetLoggerV2(zapgrpc.NewLogger(log.WithOptions(zap.IncreaseLevel(zap.ErrorLevel))))
	})
	socket := func(name string) url.URL { return url.URL{Scheme: "unix", Path: filepath.Join(dir, name)} }
	client, peer := socket("client"), socket("peer")
	c := embed.NewConfig()
	c.Name = "lab"
	c.Dir = filepath.Join(dir, "etcd")
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	c.UnsafeNoFsync = true // a lab does not outlive a crash of its machine
	c.TickMs, c.ElectionMs = heartbeatMillis, electionMillis
	c.QuotaBackendBytes = backendBytes
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEvery, snapshotCatchUp
	c.MaxWalFiles, c.MaxSnapFiles = 1, 1
	c.DowngradeCheckTime = 0

	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("starting the lab's etcd in %s: %w", dir, err)
	}
	s := &etcdServer{etcd: etcd, client: client.String()}
	if err := s.elect(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// elect makes the only member the leader at once. By itself it would wait for
// an election timeout, and a short one would mean a fast tick that costs
// processor time for as long as the lab runs.
func (s *etcdServer) elect(ctx context.Context) error {
	id := uint64(s.etcd.Server.MemberID())
	campaign := &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), From: &id, To: &id}
	err := wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, etcdStartTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-s.etcd.Server.ReadyNotify():
			return true, nil
		case err := <-s.etcd.Err():
			return false, err
		default:
		}
		if s.etcd.Server.Leader() != 0 {
			return false, nil
		}
		return false, s.etcd.Server.Process(ctx, campaign)
	})
	if err != nil {
		return fmt.Errorf("the lab's etcd did not become ready: %w", err)
	}
	return nil
}

func (s *etcdServer) stop() { s.closed.Do(s.etcd.Close) }

var errEtcdStop = errors.New("the lab's etcd did not stop in time")

// stopWithin is stop with a deadline; past it the process may still exit,
// nothing of etcd outlives it.
func (s *etcdServer) stopWithin(ctx context.Context) error {
	done := make(chan struct{})
	go func() { s.stop(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errEtcdStop
	}
}
