package nodes

import "fmt"

// NotAllowedError says that this machine or user may not make network
// namespaces, and what would help. There is no lab without them.
type NotAllowedError struct {
	// Refused is what was tried, for instance "unshare(CLONE_NEWNET)".
	Refused string
	Err     error
	// Fix is the way out, in one sentence.
	Fix string
}

func (e *NotAllowedError) Error() string {
	return fmt.Sprintf("network namespaces are not allowed here: %s: %v: %s", e.Refused, e.Err, e.Fix)
}

// Unwrap returns the kernel's error.
func (e *NotAllowedError) Unwrap() error { return e.Err }
