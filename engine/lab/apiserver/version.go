package apiserver

import (
	"runtime"

	"k8s.io/apimachinery/pkg/version"
	basecompat "k8s.io/component-base/compatibility"
)

// KubernetesVersion is the release whose API and rules the lab follows.
const KubernetesVersion = "v1.37.2"

// labVersion answers /version. Without it component-base reports its build
// placeholder, which kubectl cannot parse.
type labVersion struct{ basecompat.EffectiveVersion }

func newLabVersion() labVersion {
	return labVersion{basecompat.NewEffectiveVersionFromString("1.37", "1.36", "1.36")}
}

// Info is what GET /version returns.
func (labVersion) Info() *version.Info {
	return &version.Info{
		Major: "1", Minor: "37", GitVersion: KubernetesVersion,
		GoVersion: runtime.Version(), Compiler: runtime.Compiler,
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}
