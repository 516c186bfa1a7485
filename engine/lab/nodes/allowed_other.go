//go:build !linux

package nodes

// Allowed is a *NotAllowedError: only Linux has network namespaces.
func Allowed(int) error { return errNoNamespaces }

// NoIPv6 says the same.
func NoIPv6() error { return errNoNamespaces }
