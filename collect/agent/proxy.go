package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/kconverge/kconverge/collect"
)

// Where kube-proxy answers on its own node (k8s.io/kubernetes v1.37.2,
// pkg/proxy/apis/config/v1alpha1/defaults.go: metricsBindAddress and
// healthzBindAddress).
const (
	DefaultProxyMetrics = "http://127.0.0.1:10249"
	DefaultProxyHealth  = "http://127.0.0.1:10256"
)

// proxyTimeout bounds one question to the local kube-proxy.
const proxyTimeout = 2 * time.Second

// proxy asks the local kube-proxy.
type proxy struct {
	node            string
	metrics, health string
	client          http.Client
}

// ask returns what it says now. It never fails: what cannot be reached is a
// state.
func (p *proxy) ask(ctx context.Context) *collect.ProxyState {
	ctx, cancel := context.WithTimeout(ctx, proxyTimeout)
	defer cancel()
	s := &collect.ProxyState{Node: p.node}
	if code, _, err := p.get(ctx, p.health+"/healthz"); err == nil {
		s.Healthy = new(code == http.StatusOK)
	}
	code, body, err := p.get(ctx, p.metrics+"/metrics")
	switch {
	case err != nil:
		s.Why = collect.Plain(err.Error())
		return s
	case code != http.StatusOK:
		s.Why = fmt.Sprintf("%s answered %d", p.metrics, code)
		return s
	}
	s.Reachable = true
	readMetrics(s, body)
	if code, body, err := p.get(ctx, p.metrics+"/proxyMode"); err == nil && code == http.StatusOK && len(body) < 32 {
		s.Mode = collect.Plain(strings.TrimSpace(body))
	}
	return s
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 4 << 20

func (p *proxy) get(ctx context.Context, url string) (code int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, string(b), err
}

// readMetrics takes the few values that are wanted from the Prometheus text
// format. Those with labels of their own (ip_family) are added up; of the
// times the latest counts.
func readMetrics(s *collect.ProxyState, text string) {
	const seconds, count = "_seconds_sum", "_seconds_count"
	for sc := bufio.NewScanner(strings.NewReader(text)); sc.Scan(); {
		name, labels, v, ok := sample(sc.Text())
		if !ok {
			continue
		}
		switch strings.TrimPrefix(name, "kubeproxy_") {
		case "network_programming_duration" + seconds:
			s.ProgrammingSeconds += v
		case "network_programming_duration" + count:
			s.ProgrammingCount += uint64(v)
		case "sync_proxy_rules_duration" + seconds:
			s.SyncSeconds += v
		case "sync_proxy_rules_duration" + count:
			s.SyncCount += uint64(v)
		case "sync_proxy_rules_iptables_restore_failures_total", "sync_proxy_rules_iptables_partial_restore_failures_total",
			"sync_proxy_rules_nftables_sync_failures_total":
			s.SyncFailures += uint64(v)
		case "sync_proxy_rules_last_timestamp_seconds":
			s.LastSync = later(s.LastSync, v)
		case "sync_proxy_rules_last_queued_timestamp_seconds":
			s.LastQueued = later(s.LastQueued, v)
		case "sync_proxy_rules_endpoint_changes_pending":
			s.PendingEndpoints += int(v)
		case "sync_proxy_rules_service_changes_pending":
			s.PendingServices += int(v)
		case "process_start_time_seconds":
			s.Started = later(s.Started, v)
		case "kubernetes_build_info":
			s.Version = collect.Plain(label(labels, "git_version"))
		}
	}
}

// sample cuts one line of the text format: name{labels} value.
func sample(line string) (name, labels string, v float64, ok bool) {
	if line == "" || line[0] == '#' {
		return "", "", 0, false
	}
	name, value, found := strings.Cut(line, " ")
	if i := strings.IndexByte(line, '{'); i >= 0 {
		end := strings.LastIndexByte(line, '}')
		if end < i {
			return "", "", 0, false
		}
		name, labels, value, found = line[:i], line[i+1:end], strings.TrimSpace(line[end+1:]), true
	}
	if !found {
		return "", "", 0, false
	}
	value, _, _ = strings.Cut(value, " ") // a time may follow
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return "", "", 0, false
	}
	return name, labels, v, true
}

func label(labels, name string) string {
	_, rest, ok := strings.Cut(labels, name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// later returns the later of t and a Unix time in seconds.
func later(t time.Time, seconds float64) time.Time {
	if seconds == 0 || seconds > math.MaxInt32*2 {
		return t
	}
	x := time.UnixMicro(int64(seconds * 1e6)).UTC()
	if x.After(t) {
		return x
	}
	return t
}
