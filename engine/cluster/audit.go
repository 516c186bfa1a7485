package cluster

import (
	"encoding/json"
	"fmt"
	"os"
)

// AuditLog is the path of what the API server writes of the requests of
// Options.Audit's users, a JSON object a line (audit.k8s.io/v1, Event) at the end
// of each request, and at its answer too when it goes on (a watch).
func (c *Cluster) AuditLog() string { return c.path("audit.log") }

// writeAudit writes the audit policy and returns its path, empty without users.
func (c *Cluster) writeAudit() (string, error) {
	if len(c.o.Audit) == 0 {
		return "", nil
	}
	type m = map[string]any
	policy, err := json.Marshal(m{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
		"omitStages": []string{"RequestReceived"},
		"rules":      []m{{"level": "Metadata", "users": c.o.Audit}, {"level": "None"}},
	})
	if err != nil {
		return "", err
	}
	path := c.path("audit-policy.json")
	if err := os.WriteFile(path, policy, 0o600); err != nil {
		return "", fmt.Errorf("write the audit policy: %w", err)
	}
	return path, nil
}
