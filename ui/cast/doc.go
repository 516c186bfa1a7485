// Package cast turns a recording into an asciicast (version 2): the real screens, driven
// by the root model at the recording's own times, with a marker where each episode
// begins and ends. It is made as fast as the machine can and never sleeps.
//
// It may import ui, engine/lanes and engine/timeline. Start with cast.go.
package cast
