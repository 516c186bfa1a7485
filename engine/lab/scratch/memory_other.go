//go:build !linux

package scratch

import "errors"

func inMemory() (*Dir, error) { return nil, errors.ErrUnsupported }
