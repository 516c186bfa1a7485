package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// namespaceLimit is how long the question for a namespace may take.
const namespaceLimit = 5 * time.Second

// absent is an error when the cluster says that an observed namespace does not
// exist. Who may not ask, or is not answered, learns nothing: the watches tell
// more about that.
func (c *cluster) absent(ctx context.Context) error {
	if c.all {
		return nil
	}
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceLimit)
	defer cancel()
	for _, ns := range c.namespaces {
		if _, err := client.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			return exitWith(exitNot, &absentError{ns, c.name})
		}
	}
	return nil
}

// absentError names a namespace that does not exist.
type absentError struct{ namespace, cluster string }

// Error implements error.
func (e *absentError) Error() string {
	return fmt.Sprintf("namespace %q does not exist in %s: choose another with -n, or all with -A", e.namespace, e.cluster)
}

// observeExisting runs an observation without a screen. An absent namespace is
// said at once, since it looks like one with nothing in it, and is not called
// converged when it is still absent at the end: a command may have created it.
func (c *cluster) observeExisting(ctx context.Context, o *observation, w io.Writer) error {
	if e, ok := errors.AsType[*absentError](c.absent(ctx)); ok {
		fmt.Fprintf(w, "kconverge: namespace %q does not exist yet: there is nothing to observe until it does\n", e.namespace)
	}
	if err := o.run(ctx); err != nil {
		return err
	}
	return c.absent(context.WithoutCancel(ctx))
}
