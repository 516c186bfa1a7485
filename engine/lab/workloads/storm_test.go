package workloads_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whatever is done to deployments while other things are still under way, they
// end with exactly the pods they ask for, all of the newest revision.
func TestAfterAStormOfChangesEveryDeploymentHasWhatItAsksFor(t *testing.T) {
	c := newCluster(t, 3)
	apps := []string{"a", "b", "c"}
	for i, app := range apps {
		surge := []string{"25%", "0", "2"}[i]
		c.deploy(deployment(app, 3, strategy(surge, "1")))
	}
	random := rand.New(rand.NewPCG(1, 2))
	paused := map[string]bool{}
	for i := range 60 {
		app := apps[random.IntN(len(apps))]
		pods := c.pods(app)
		switch op := random.IntN(8); {
		case op < 2:
			c.change(app, replicas(int32(random.IntN(7))))
		case op < 4:
			c.change(app, image(fmt.Sprintf("v%d", i)))
		case op == 4:
			c.change(app, image("v1"))
		case op == 5:
			paused[app] = !paused[app]
			c.change(app, func(d *appsv1.Deployment) { d.Spec.Paused = paused[app] })
		case len(pods) == 0:
		case op == 6:
			pod := pods[random.IntN(len(pods))].Name
			if err := c.client.CoreV1().Pods("default").Delete(c.ctx, pod, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		case op == 7:
			pod := pods[random.IntN(len(pods))].Name
			_, err := c.client.CoreV1().Pods("default").Patch(c.ctx, pod, types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"lost"}}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
		}
	}
	for _, app := range apps {
		c.change(app, func(d *appsv1.Deployment) { d.Spec.Paused = false })
	}
	for _, app := range apps {
		d := c.rolledOut(app)
		newest := c.byImage(app, d.Spec.Template.Spec.Containers[0].Image)
		for _, p := range c.pods(app) {
			if !metav1.IsControlledBy(&p, &newest) {
				t.Errorf("%s is not of the newest revision", p.Name)
			}
		}
		for _, rs := range c.replicaSets(app) {
			if rs.UID != newest.UID && *rs.Spec.Replicas != 0 {
				t.Errorf("old revision %s still asks for %d pods", rs.Name, *rs.Spec.Replicas)
			}
		}
	}
	c.until("relabelled pods are released", func() (bool, error) {
		for _, p := range c.pods("lost") {
			// One that was on its way out when it was relabelled keeps its
			// owner until it is gone.
			if len(p.OwnerReferences) != 0 {
				return false, nil
			}
		}
		return true, nil
	})
}
