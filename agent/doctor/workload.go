package doctor

import (
	"context"
	"fmt"

	"github.com/florete/florete/agent/workload"
)

// workload checks that the SPIFFE Workload API of the host answers. The check is left out if the
// manifest does not let processes use the API.
func (h *host) workload(ctx context.Context) (string, []Finding) {
	served := 0
	for _, c := range h.manifest.Forwarder.Callers {
		if c.Workload {
			served++
		}
	}
	if served == 0 {
		return "no service has the Workload API", nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := workload.Probe(ctx, h.Workload); err != nil {
		return "no answer", []Finding{fix("Workload API: "+err.Error(), "systemctl restart "+h.Instance.Unit("workload.socket"))}
	}
	return fmt.Sprintf("%d identities at unix://%s", served, h.Workload), nil
}
