package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// upstreams checks that the upstreams of published services accept connections. It connects but
// sends no data.
func (h *host) upstreams(ctx context.Context) (string, []Finding) {
	var found []Finding
	tried := 0
	for _, p := range h.manifest.Forwarder.Publish {
		if p.Protocol == document.UDP {
			continue // checking a UDP upstream would require sending data
		}
		tried++
		if err := connect(ctx, p); err != nil {
			found = append(found, h.start(ctx, p, err))
		}
	}
	return fmt.Sprintf("%d of %d accept connections", tried-len(found), tried), found
}

// connect connects to an upstream exactly as the forwarder does. For a Unix socket this includes
// the check of its owner.
func connect(ctx context.Context, p document.Published) error {
	owner, err := upstream.NewOwner(p.User)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := upstream.Dial(ctx, p, owner)
	if err == nil {
		conn.Close()
	}
	return err
}

// start returns the finding for an upstream that does not accept connections. If there is a unit
// with the service's name, the remedy is to start that unit.
func (h *host) start(ctx context.Context, p document.Published, err error) Finding {
	problem := fmt.Sprintf("behind %s: %v", p.ID.Short(), err)
	var foreign *upstream.ForeignError
	if errors.As(err, &foreign) {
		return do(problem, fmt.Sprintf("stop the program at %s, or write its account as the service's user in the topology", p.Upstream))
	}
	unit := p.ID.Name() + ".service"
	if name := p.ID.Name(); name == spiffe.ControlService || name == spiffe.CacheService {
		unit = h.Instance.Unit("provider-config.service")
	}
	if units, err := h.Units(ctx, []string{unit}); err == nil && len(units) == 1 && units[0].Load == "loaded" && units[0].Active != "active" {
		return fix(problem, "systemctl restart "+unit)
	}
	return do(problem, fmt.Sprintf("start the program behind %s, which must accept connections at %s", p.ID.Short(), p.Upstream))
}
