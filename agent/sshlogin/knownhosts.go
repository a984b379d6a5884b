package sshlogin

import (
	"net"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// defaultPort is the port that known_hosts(5) leaves out.
const defaultPort = "22"

// KnownHosts returns lines of known_hosts(5) with the host keys of the services that the host
// reaches. The argument host is a name in the form in which ssh looks it up, "name" or
// "[name]:port". If host is empty, KnownHosts returns the lines of all services.
func KnownHosts(m document.Manifest, host string) string {
	wanted, at, err := net.SplitHostPort(host)
	if err != nil {
		wanted, at = host, defaultPort
	}
	var lines strings.Builder
	for _, r := range m.Forwarder.Reach {
		d, err := spiffe.Dial(r.ID)
		port := strconv.Itoa(int(r.Listen.Port()))
		if err != nil || host != "" && port != at {
			continue
		}
		var names []string
		for _, name := range append([]string{spiffe.Render(d)}, r.Aliases...) {
			if host != "" && name != wanted && !document.Covers(name, wanted) {
				continue
			}
			if port != defaultPort {
				name = "[" + name + "]:" + port
			}
			names = append(names, name)
		}
		for _, key := range r.HostKeys {
			if len(names) > 0 {
				lines.WriteString(strings.Join(names, ",") + " " + key + "\n")
			}
		}
	}
	return lines.String()
}
