// Package timeline turns events into knowledge: for each Service the planes
// (pods, slices, endpoints, rules of each node), what each one had and what was
// wanted of it at any moment, the steps between, their paths and lags, and
// whether the Service is converged as of a watermark.
//
// It is pure: it reads no clock (time arrives as events), starts no goroutine
// and imports neither client-go nor a terminal. A Model belongs to one
// goroutine; the Snapshots it hands out are immutable and may be shared.
//
// # Words
//
// For each plane p, had_p(t) is what was observed and wanted_p(t) is computed
// from its direct upstream's had: slices from Service and pods, rules@NODE from
// Service and slices as had. A step is a moment at which wanted_p changed for an
// endpoint; its origin is the event that moved it. The arrival is the first
// moment from then on at which had_p agrees about that endpoint in every port
// and family; an opposite step before that supersedes it. Lag is arrival minus
// origin. A path is the steps of one endpoint that stem from one root event.
// A difference is a (plane, endpoint) about which had and wanted disagree; an
// episode a maximal interval with at least one.
//
// # Choices
//
// Order. Events are held back for the reordering window. What watches deliver is
// applied by resourceVersion, everything else by the time of observation; each
// keeps its own time, so lags may be negative (reorder.go). An event that comes
// later than that still finds its effects: by the versions where there are
// some, within Options.LookBack for a node's rules (steps.go, early).
//
// Error. A hop's error is the largest disorder seen so far between the sources
// of its two ends, at least 1 ms (two receipts in one process), plus the interval
// in which the origin lies when a list after an interruption brought it. The
// interval in which an arrival lies is given apart, as NotBefore.
//
// A node's rules that come through a log were timed by the node's clock: its
// bound (collect.ClockBound) is added to the error. Where only one side is
// bounded, the arrival's time is the latest possible and NotBefore its step. The
// reordering window grows with the first such event (Options.LogWindow).
//
// Baseline. What a source's first list, or a node's first dump, brings makes no
// steps. Planes are live once all they rest on is listed; until then nothing differs
// (waits.go).
//
// Past. What objects say of when they were written, and what agents' logs told
// from before the viewer came, is kept beside the planes (Plane.Past) and never
// in them: it is drawn, and nothing is computed from it (past.go).
//
// Roots. A step in the rules belongs to the path whose step in the slices the
// slice event satisfied; to the same root, with cause fallback, when another
// endpoint's step made it (the last ready one left, or a ready one came back);
// to that of a superseded step which a controller that is behind still carries
// out; else the slice event is its own root. A removal that is overtaken by a further
// change (terminating, then gone) goes on and arrives when the endpoint stops
// being routable; an opposite step supersedes it. A step that had already
// agrees with makes no hop, but for an addition (already-routed) and an address
// that went over to another endpoint (handed-over).
//
// Operation. Add and remove are decided by the pods' word (ready, or serving
// while terminating when nothing is ready), taken back or brought about by the
// rules where they say otherwise. So a pod that leaves the slice after it had
// stopped being routable is a change.
//
// Lives. A path that begins with a pod being ready tells how it came to be that
// (life.go), and one that is a pod's end how it ended. Probes that failed are the
// kubelet's Events' word, and compared with other words of the kubelet only
// (probes.go).
//
// Costs. How low the nodes' capacity fell in a window, how long additions were not
// routed to, which preStop removals would have needed and how long two revisions
// answered side by side are asked of a Service in a Snapshot and computed then
// (capacity.go, unrouted.go, advice.go, together.go). Each says what it left out.
//
// Unexpected rules and hand-made edits are differences; the former make no path.
// Services that no selector speaks for, and what other managers than the
// EndpointSlice controller publish, are their own wanted in the slices.
//
// Frontends are compared by address and port. Those that lead nowhere have no
// policy that rules could show.
//
// Facts. What objects say beside what becomes of it in the planes (labels, ports, why a
// container waits) goes with a Snapshot as it is, for engine/findings (facts.go).
//
// Settled. A workload with pods that are terminating and still count as
// endpoints is not settled (workloads.go).
//
// Nodes that are gone or not ready keep their lanes (until they are deleted),
// but their differences do not count and their sources are not needed for the
// watermark.
//
// Instants. Service.At tells any past moment from the lanes, and what nodes, sources
// and the Service itself were then (standing.go). What may be told otherwise later
// stands with Instant.
//
// # Memory
//
// Memory follows steps, not nodes x endpoints. Nodes that came with the same rules
// for a Service are one plane, a group (groups.go): a set of nodes, what they have
// in common once, and for each of them no more than since when and with which
// generation (for a first dump that is kept with the node, for all Services). As
// long as a group is just what its class wants (classes.go) the class stands for
// its cells (cells.go, root). A group goes through what happens to all its members
// alike and makes no step: lists, and what is found with them.
//
// A node leaves the group when it is to make a step, or when its own rules change.
// It gets a plane of its own then, whose cells lie over those that it shared; only
// what has changed for it is its own. So a change costs its endpoints times the
// nodes, and an event the Services that it touches. When retention has let go of all
// that such planes had of their own, they become one group again (fold.go), which
// keeps the time and generation of each node's last change. What is lost with that
// is since when, before this last change, each single endpoint had been there.
//
// Snapshots hold the same: NodePlanes keeps groups as they are and makes the planes
// of nodes for who asks (nodeplanes.go). Whether nodes share a plane or not must not
// show in anything that is said; groups_test.go plays crowds both ways.
//
// # Where to start
//
// types.go and view.go say what comes out, model.go what goes in. Then wants.go (slices
// wanted from pods), slices.go (slices had), rules.go (rules wanted), dumps.go and
// plant.go (rules had),
// steps.go (steps and arrivals) and paths.go. A scenario in testdata/scenarios
// shows each rule at work.
package timeline
