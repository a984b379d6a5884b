package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"

	"florete"
)

// upstreams are the programs behind what this host publishes, which must accept
// connections. Nothing is sent.
func (h *host) upstreams(ctx context.Context) (string, []Finding) {
	var found []Finding
	tried := 0
	for _, p := range h.manifest.Forwarder.Publish {
		if p.Protocol == florete.UDP {
			continue // what takes datagrams does not answer
		}
		tried++
		network, address := "tcp", p.Upstream
		if path, ok := strings.CutPrefix(p.Upstream, "unix:"); ok {
			network, address = "unix", path
		}
		conn, err := (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, address)
		if err == nil {
			conn.Close()
			continue
		}
		found = append(found, h.start(ctx, p, err))
	}
	return fmt.Sprintf("%d of %d accept connections", tried-len(found), tried), found
}

// start is the finding of an upstream that does not accept connections: its unit, if one
// is called like the service, or a person starts it.
func (h *host) start(ctx context.Context, p florete.Published, err error) Finding {
	problem := fmt.Sprintf("behind %s: %v", p.ID.Short(), err)
	unit := p.ID.Name() + ".service"
	if units, err := h.Units(ctx, []string{unit}); err == nil && len(units) == 1 && units[0].Load == "loaded" && units[0].Active != "active" {
		return fix(problem, "systemctl restart "+unit)
	}
	return do(problem, fmt.Sprintf("start the program behind %s, which must accept connections at %s", p.ID.Short(), p.Upstream))
}
