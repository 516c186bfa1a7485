package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/kconverge/kconverge/collect"
)

// Options configure a Source.
type Options struct {
	// Config leads to the API server. It is copied.
	Config *rest.Config
	// Namespaces to watch; empty for all. Nodes are watched either way.
	Namespaces []string
	// Resources to watch; empty for all ten kube/… sources.
	Resources []collect.SourceID
	// Clock stamps events; collect.SystemClock when nil.
	Clock collect.Clock
	// VouchEvery: when nothing has vouched for that long, a check is made.
	// 0 makes checks only when Vouch asks for them.
	VouchEvery time.Duration
	// UserAgent for the requests; "kconverge" with the platform when empty.
	UserAgent string

	timing *timing // tests
}

// Source watches an API server. It implements collect.Source and
// collect.Voucher.
type Source struct {
	server string
	clock  collect.Clock
	every  time.Duration
	groups []*group
	feeds  []*feed
}

var (
	_ collect.Source  = (*Source)(nil)
	_ collect.Voucher = (*Source)(nil)
)

// New prepares a Source; nothing is sent before Run. The error names what is
// wrong with the options.
func New(o Options) (*Source, error) {
	if o.Config == nil {
		return nil, errors.New("kube source: no configuration given")
	}
	cfg := ourConfig(o.Config, o.UserAgent)
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("the configuration for %s cannot be used: %w", cfg.Host, err)
	}
	meta, err := metadata.NewForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("the configuration for %s cannot be used: %w", cfg.Host, err)
	}
	s := &Source{server: cfg.Host, clock: o.Clock, every: o.VouchEvery}
	if s.clock == nil {
		s.clock = collect.SystemClock{}
	}
	tm := o.timing
	if tm == nil {
		tm = &defaultTiming
	}
	wanted := o.Resources
	if len(wanted) == 0 {
		for i := range resources {
			wanted = append(wanted, resources[i].id)
		}
	}
	clients := map[schema.GroupVersion]rest.Interface{}
	for _, id := range wanted {
		r := resourceByID(id)
		if r == nil {
			return nil, fmt.Errorf("kube source: %q is not a resource that can be watched", id)
		}
		gv := r.gvr.GroupVersion()
		if clients[gv] == nil {
			c := rest.CopyConfig(cfg)
			c.GroupVersion, c.APIPath = &gv, "/apis"
			if gv.Group == "" {
				c.APIPath = "/api"
			}
			c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
			if clients[gv], err = rest.RESTClientForConfigAndClient(c, httpClient); err != nil {
				return nil, fmt.Errorf("the configuration for %s cannot be used: %w", cfg.Host, err)
			}
		}
		g := &group{id: id, clock: s.clock, members: map[*feed]*member{}}
		s.groups = append(s.groups, g)
		for _, ns := range scopes(r, o.Namespaces) {
			f := newFeed(&feed{
				res: r, ns: ns, server: cfg.Host, client: clients[gv],
				meta: meta.Resource(r.gvr), group: g, clock: s.clock, timing: *tm,
			})
			if ns != "" {
				f.meta = meta.Resource(r.gvr).Namespace(ns)
			}
			g.members[f] = &member{state: collect.SourceState{State: collect.SourceStarting}}
			s.feeds = append(s.feeds, f)
		}
	}
	return s, nil
}

// scopes are the namespaces of a resource's watches, each once; "" is all.
func scopes(r *resource, namespaces []string) []string {
	if !r.namespaced || len(namespaces) == 0 || slices.Contains(namespaces, "") {
		return []string{""}
	}
	sorted := slices.Sorted(slices.Values(namespaces))
	return slices.Compact(sorted)
}

// ourConfig is a copy of cfg with what every connection of kconverge has:
// protobuf, no throttling on this side (nothing here asks in a loop without a
// pause of its own), no time limit on watches, and no warnings on standard
// error: reading v1 Endpoints alone gives one. What comes from this machine is not
// compressed: a server that lists within a watch packs each of its events by itself.
func ourConfig(cfg *rest.Config, userAgent string) *rest.Config {
	c := rest.CopyConfig(cfg)
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	c.QPS, c.Burst, c.RateLimiter = -1, 0, nil
	c.Timeout = 0
	c.DisableCompression = c.DisableCompression || loopback(c.Host)
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c.UserAgent = userAgent
	if c.UserAgent == "" {
		c.UserAgent = fmt.Sprintf("kconverge (%s/%s)", runtime.GOOS, runtime.GOARCH)
	}
	return c
}

// loopback tells whether a server, given by its URL or host and port, is on this
// machine, by its address or the one name that always means it.
func loopback(server string) bool {
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		server = u.Host
	}
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = strings.Trim(server, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Name implements collect.Source.
func (s *Source) Name() string { return "cluster at " + s.server }

// Run implements collect.Source: it watches until ctx ends and rides out
// everything that a server can do, as events. It returns nil.
func (s *Source) Run(ctx context.Context, sink collect.Sink) error {
	for _, g := range s.groups {
		g.sink = sink
	}
	var wg sync.WaitGroup
	for _, f := range s.feeds {
		wg.Go(func() { f.run(ctx) })
		every := s.every
		if f.res.id == collect.SourceKubeEvents {
			every *= rareEvents
		}
		wg.Go(func() { f.runChecks(ctx, every) })
	}
	wg.Wait()
	for _, g := range s.groups {
		g.stop()
	}
	return nil
}

// Vouch implements collect.Voucher: it asks every watch to confirm that nothing
// is missing up to now.
func (s *Source) Vouch() {
	now := s.clock.Now()
	for _, f := range s.feeds {
		f.ask(now)
	}
}
