// Package view holds the screen's views: one file each, and what they share.
//
// A View draws a part of the screen from a Context and carries out the actions
// that it knows. It never touches a source, a key code or the terminal: keys
// become Actions in package ui, and what a view cannot do itself (show another
// view, copy, scale a Deployment) it asks for with a Request.
//
// Start with view.go, then timeline.go.
package view
