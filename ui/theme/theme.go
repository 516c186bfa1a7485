package theme

import (
	"fmt"
	"image/color"

	"github.com/charmbracelet/x/ansi"
)

// Role is what a piece of the screen is for.
type Role uint8

// Roles.
const (
	Text      Role = iota // what one reads
	Strong                // what one reads first
	Dim                   // what one may skip
	Line                  // rules and frames
	Accent                // where one is: the view, the lane, the cursor
	Selected              // a selected entry of a list, a tab
	Good                  // agrees, ready, live
	Warn                  // behind, waiting
	Bad                   // wrong, dangerous
	Tentative             // not vouched for yet, or claimed
	roles
)

// Style is how a role looks. A nil colour is the terminal's own.
type Style struct {
	Fg, Bg                         color.Color
	Bold, Faint, Underline, Invert bool
}

// Theme gives every role a style.
type Theme struct {
	Name   string
	Styles [roles]Style
}

// Style of a role.
func (t *Theme) Style(r Role) Style { return t.Styles[r] }

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

// Dark is for dark backgrounds. Every text colour has a contrast of at least
// 4.5:1 on all usual ones (see DarkBackgrounds).
var Dark = Theme{Name: "dark", Styles: [roles]Style{
	Text:      {Fg: rgb(0xd7dae0)},
	Strong:    {Fg: rgb(0xffffff), Bold: true},
	Dim:       {Fg: rgb(0xa3abb8)},
	Line:      {Fg: rgb(0x6b7688)},
	Accent:    {Fg: rgb(0x7cc7ff), Bold: true},
	Selected:  {Fg: rgb(0x10141c), Bg: rgb(0x7cc7ff), Bold: true},
	Good:      {Fg: rgb(0x6fcf97)},
	Warn:      {Fg: rgb(0xf2c14e)},
	Bad:       {Fg: rgb(0xff8f8f), Bold: true},
	Tentative: {Fg: rgb(0xa9b6a9)},
}}

// Light is for light backgrounds (see LightBackgrounds).
var Light = Theme{Name: "light", Styles: [roles]Style{
	Text:      {Fg: rgb(0x24292f)},
	Strong:    {Fg: rgb(0x000000), Bold: true},
	Dim:       {Fg: rgb(0x565d66)},
	Line:      {Fg: rgb(0x7d8590)},
	Accent:    {Fg: rgb(0x0756a5), Bold: true},
	Selected:  {Fg: rgb(0xffffff), Bg: rgb(0x0756a5), Bold: true},
	Good:      {Fg: rgb(0x0f6437)},
	Warn:      {Fg: rgb(0x7a4b00)},
	Bad:       {Fg: rgb(0xb01020), Bold: true},
	Tentative: {Fg: rgb(0x4f6457)},
}}

// HighContrast and HighContrastLight are for eyes and projectors that need more: every text
// colour has a contrast of at least 7:1 (WCAG 2.1, AAA).
var (
	HighContrast = Theme{Name: "contrast", Styles: [roles]Style{
		Text:      {Fg: rgb(0xffffff)},
		Strong:    {Fg: rgb(0xffffff), Bold: true},
		Dim:       {Fg: rgb(0xe0e0e0)},
		Line:      {Fg: rgb(0xb8b8b8)},
		Accent:    {Fg: rgb(0x8be9ff), Bold: true},
		Selected:  {Fg: rgb(0x000000), Bg: rgb(0xffff5f), Bold: true},
		Good:      {Fg: rgb(0x5fff87)},
		Warn:      {Fg: rgb(0xffff5f), Bold: true},
		Bad:       {Fg: rgb(0xffc0c0), Bold: true, Underline: true},
		Tentative: {Fg: rgb(0xd0e0d0)},
	}}
	HighContrastLight = Theme{Name: "contrast", Styles: [roles]Style{
		Text:      {Fg: rgb(0x000000)},
		Strong:    {Fg: rgb(0x000000), Bold: true},
		Dim:       {Fg: rgb(0x303030)},
		Line:      {Fg: rgb(0x555555)},
		Accent:    {Fg: rgb(0x00308f), Bold: true},
		Selected:  {Fg: rgb(0xffffff), Bg: rgb(0x000080), Bold: true},
		Good:      {Fg: rgb(0x004520)},
		Warn:      {Fg: rgb(0x5a3000), Bold: true},
		Bad:       {Fg: rgb(0x800010), Bold: true, Underline: true},
		Tentative: {Fg: rgb(0x2c4034)},
	}}
)

// ANSI uses the terminal's own 16 colours, whose owner chose them to be legible
// on a dark background.
var ANSI = Theme{Name: "ansi", Styles: [roles]Style{
	Strong:    {Bold: true},
	Accent:    {Fg: ansi.BrightCyan, Bold: true},
	Selected:  {Invert: true, Bold: true},
	Good:      {Fg: ansi.BrightGreen},
	Warn:      {Fg: ansi.BrightYellow},
	Bad:       {Fg: ansi.BrightRed, Bold: true},
	Dim:       {Faint: true},
	Line:      {Faint: true},
	Tentative: {Fg: ansi.Green},
}}

// ANSILight is ANSI for a light background, on which yellow cannot be read.
var ANSILight = Theme{Name: "ansi", Styles: [roles]Style{
	Strong:    {Bold: true},
	Accent:    {Fg: ansi.Blue, Bold: true},
	Selected:  {Invert: true, Bold: true},
	Good:      {Fg: ansi.Green},
	Warn:      {Fg: ansi.Magenta},
	Bad:       {Fg: ansi.Red, Bold: true},
	Dim:       {Faint: true},
	Line:      {Faint: true},
	Tentative: {Fg: ansi.Green, Faint: true},
}}

// Plain has no colours: only weight and inversion.
var Plain = Theme{Name: "none", Styles: [roles]Style{
	Strong:   {Bold: true},
	Accent:   {Bold: true},
	Selected: {Invert: true},
	Warn:     {Bold: true},
	Bad:      {Bold: true, Underline: true},
}}

// Names are the names that ByName knows.
var Names = []string{"auto", "dark", "light", "contrast", "ansi", "none"}

// ByName finds a theme; "" and "auto" give nil: follow the terminal.
func ByName(name string) (*Theme, error) {
	switch name {
	case "", "auto":
		return nil, nil
	case "dark":
		return &Dark, nil
	case "light":
		return &Light, nil
	case "contrast":
		return &HighContrast, nil
	case "ansi":
		return &ANSI, nil
	case "none":
		return &Plain, nil
	}
	return nil, fmt.Errorf("no theme is called %q: use one of %v", name, Names)
}
