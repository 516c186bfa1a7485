//go:build !linux

package noderules

import (
	"context"
	"runtime"

	"github.com/kconverge/kconverge/collect"
)

// Run implements collect.Source: it returns *UnsupportedError.
func (s *Source) Run(context.Context, collect.Sink) error {
	return &UnsupportedError{OS: runtime.GOOS}
}

// Read returns *UnsupportedError.
func Read(context.Context, Options) (collect.Rules, error) {
	return collect.Rules{}, &UnsupportedError{OS: runtime.GOOS}
}
