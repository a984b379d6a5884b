package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/florete/florete/agent/forward/upstream"
)

// guard checks that the nftables table of flor guard is in force. Without it, other accounts of
// the host can connect to upstreams on loopback, where the allow list is not checked.
func (h *host) guard(ctx context.Context) (string, []Finding) {
	var open []string
	anySystem := 0
	for _, p := range h.manifest.Forwarder.Publish {
		if len(upstream.Loopback(p)) == 0 {
			continue
		}
		open = append(open, fmt.Sprintf("%s (%s)", p.Upstream, p.ID.Short()))
		if p.User == "" {
			anySystem++
		}
	}
	seen := fmt.Sprintf("%d upstreams on loopback, %d of any account of the system", len(open), anySystem)
	if len(open) == 0 {
		return "no upstream on loopback", nil
	}
	if h.Guards == nil {
		if os.Geteuid() != 0 {
			return seen + "; root alone can see whether they are guarded", nil
		}
		h.Guards = func(ctx context.Context) bool { return upstream.Guarded(ctx, h.Instance) }
	}
	if h.Guards(ctx) {
		return seen, nil
	}
	command := h.restart("guard")
	if _, err := exec.LookPath("nft"); err != nil {
		command = "apt install nftables && " + command
	}
	var found []Finding
	for _, o := range open {
		found = append(found, fix("every account of this host connects to upstream "+o+" past the allow list", command))
	}
	return seen, found
}
