package view

// Action is something a person can ask for, by its stable name. Keys can be
// bound to it, the palette lists it.
type Action string

// Actions.
const (
	Quit     Action = "quit"
	Help     Action = "help"
	Palette  Action = "palette"
	Back     Action = "back"
	NextView Action = "next-view"
	PrevView Action = "previous-view"

	Up       Action = "up"
	Down     Action = "down"
	Left     Action = "left"
	Right    Action = "right"
	FarLeft  Action = "far-left"
	FarRight Action = "far-right"
	PageUp   Action = "page-up"
	PageDown Action = "page-down"
	Top      Action = "top"
	Bottom   Action = "bottom"

	Open        Action = "open"
	Filter      Action = "filter"
	ZoomIn      Action = "zoom-in"
	ZoomOut     Action = "zoom-out"
	Fit         Action = "fit"
	Follow      Action = "follow"
	Pause       Action = "pause"
	PrevEpisode Action = "previous-episode"
	NextEpisode Action = "next-episode"
	PrevChange  Action = "previous-change"
	NextChange  Action = "next-change"
	FoldQuiet   Action = "fold-quiet"
	MarkTime    Action = "mark"
	UnfoldPods  Action = "unfold-pods"
	AllNodes    Action = "all-nodes"
	Matrix      Action = "matrix"
	SortRows    Action = "sort"
	Compare     Action = "compare"
	LogScale    Action = "log-scale"
	PrevDiffer  Action = "previous-difference"
	NextDiffer  Action = "next-difference"
	Copy        Action = "copy"
	Mouse       Action = "mouse"
	Redraw      Action = "redraw"

	Faster      Action = "replay-faster"
	Slower      Action = "replay-slower"
	NextEvent   Action = "next-event"
	PrevEvent   Action = "previous-event"
	NextStep    Action = "next-step"
	PlayEpisode Action = "play-to-next-episode"
	ShowCursor  Action = "replay-cursor"
	GoTo        Action = "go-to-time"

	Scale     Action = "scale"
	Restart   Action = "restart"
	DeletePod Action = "delete-pod"
	Faults    Action = "faults"
	Traffic   Action = "traffic"
	CopyHint  Action = "copy-kubectl-line"

	Save   Action = "save-recording"
	Export Action = "export"
)

// Show is the action that shows a view.
func Show(id ID) Action { return Action("show-" + string(id)) }

// Info describes an action to people.
type Info struct {
	Action Action
	Keys   []string // by default
	Short  string   // for the last line of the screen
	Help   string
	Group  string
}

// Groups of actions, in the order in which help shows them.
const (
	GroupMove  = "Move"
	GroupTime  = "Time"
	GroupLanes = "Lanes and changes"
	GroupLab   = "Lab"
	GroupPlay  = "Replay"
	GroupView  = "Views"
	GroupOther = "Other"
)

// Actions is every action there is, with its default keys.
var Actions = []Info{
	{Up, []string{"up", "k"}, "lane", "one up", GroupMove},
	{Down, []string{"down", "j"}, "lane", "one down", GroupMove},
	{Left, []string{"left", "h"}, "cursor", "cursor one cell back", GroupMove},
	{Right, []string{"right", "l"}, "cursor", "cursor one cell on", GroupMove},
	{FarLeft, []string{"shift+left", "H"}, "", "cursor ten cells back", GroupMove},
	{FarRight, []string{"shift+right", "L"}, "", "cursor ten cells on", GroupMove},
	{PageUp, []string{"pgup", "ctrl+b"}, "", "one page up", GroupMove},
	{PageDown, []string{"pgdown", "ctrl+f"}, "", "one page down", GroupMove},
	{Top, []string{"g", "home"}, "", "to the first", GroupMove},
	{Bottom, []string{"G", "end"}, "", "to the last", GroupMove},

	{Follow, []string{"f"}, "now", "follow now", GroupTime},
	{Pause, []string{"space"}, "pause", "pause, or play on", GroupTime},
	{ZoomIn, []string{"+", "="}, "zoom", "less time on the screen", GroupTime},
	{ZoomOut, []string{"-"}, "zoom", "more time on the screen", GroupTime},
	{Fit, []string{"0"}, "fit", "everything on the screen", GroupTime},
	{PrevEpisode, []string{"["}, "episode", "to the episode before", GroupTime},
	{NextEpisode, []string{"]"}, "episode", "to the episode after", GroupTime},
	{MarkTime, []string{"m"}, "mark", "mark this moment; a second mark gives the time between, a third takes both away", GroupTime},
	{FoldQuiet, []string{"z"}, "fold", "fold or unfold quiet time", GroupTime},

	{Open, []string{"enter"}, "open", "open what is chosen", GroupLanes},
	{PrevChange, []string{"p"}, "change", "to the change before", GroupLanes},
	{NextChange, []string{"n"}, "change", "to the change after", GroupLanes},
	{UnfoldPods, []string{"u"}, "unfold", "a lane per steady pod, or one for all", GroupLanes},
	{AllNodes, []string{"a"}, "all nodes", "a lane for each node, however many", GroupLanes},
	{Matrix, []string{"x"}, "matrix", "nodes by endpoint of one Service, or by Service", GroupLanes},
	{SortRows, []string{"o"}, "sort", "nodes by name, or the latest first", GroupLanes},
	{Compare, []string{"C"}, "compare", "compare other changes with this one", GroupLanes},
	{LogScale, []string{"e"}, "log", "axes of a change even, or by logarithm", GroupLanes},
	{PrevDiffer, []string{"V"}, "", "to the cell before that differs", GroupLanes},
	{NextDiffer, []string{"v"}, "differs", "to the next cell that differs", GroupLanes},
	{Filter, []string{"/"}, "filter", "filter: several words, !word leaves out", GroupLanes},
	{Copy, []string{"y"}, "copy", "copy what is chosen", GroupLanes},

	{Slower, []string{"<"}, "slower", "play more slowly", GroupPlay},
	{Faster, []string{">"}, "faster", "play faster", GroupPlay},
	{PrevEvent, []string{","}, "event", "one event back", GroupPlay},
	{NextEvent, []string{"."}, "event", "one event on", GroupPlay},
	{NextStep, []string{"N"}, "step", "on to the next step of a change", GroupPlay},
	{PlayEpisode, []string{"}"}, "episode", "on to the next start or end of an episode", GroupPlay},
	{ShowCursor, []string{"@"}, "here", "show what was known at the cursor", GroupPlay},
	{GoTo, []string{"t"}, "time", "show a time: 15:04:05, or +10s, or -1m", GroupPlay},

	{Scale, []string{"s"}, "scale", "scale what owns the pods", GroupLab},
	{Restart, []string{"r"}, "restart", "restart what owns the pods", GroupLab},
	{DeletePod, []string{"d"}, "delete pod", "delete the chosen pod", GroupLab},
	{Faults, []string{"b"}, "faults", "break something: the menu of faults", GroupLab},
	{Traffic, []string{"c"}, "traffic", "open connections from each node to each Service", GroupLab},
	{CopyHint, []string{"Y"}, "kubectl line", "copy the kubectl line for this lab", GroupLab},

	{Show(Services), []string{"1"}, "", "Services", GroupView},
	{Show(Timeline), []string{"2"}, "", "Timeline", GroupView},
	{Show(Path), []string{"3"}, "", "Path of one change", GroupView},
	{Show(Nodes), []string{"4"}, "", "Nodes", GroupView},
	{Show(Engine), []string{"5"}, "", "Engine: reconciler and rule sync", GroupView},
	{Show(Events), []string{"6"}, "", "Events, gaps and sources", GroupView},
	{Show(Findings), []string{"7"}, "", "Findings: what is wrong or risky, and what to do", GroupView},
	{NextView, []string{"tab"}, "", "next view", GroupView},
	{PrevView, []string{"shift+tab"}, "", "previous view", GroupView},

	{Help, []string{"?"}, "help", "what the keys do here", GroupOther},
	{Palette, []string{":", "ctrl+p"}, "all", "every action by name", GroupOther},
	{Back, []string{"esc"}, "back", "back one layer", GroupOther},
	{Save, []string{"ctrl+s"}, "save", "save the last minutes as a recording", GroupOther},
	{Export, []string{"E"}, "export", "export what is shown to a file", GroupOther},
	{Mouse, []string{"ctrl+t"}, "", "give the mouse to the terminal, or back", GroupOther},
	{Redraw, []string{"ctrl+l"}, "", "draw the whole screen again", GroupOther},
	{Quit, []string{"q", "ctrl+c"}, "quit", "quit", GroupOther},
}

// InfoOf finds the description of an action.
func InfoOf(a Action) (Info, bool) {
	for _, i := range Actions {
		if i.Action == a {
			return i, true
		}
	}
	return Info{}, false
}
