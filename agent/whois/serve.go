package whois

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/unixsock"
)

// timeout is the time limit of a query, for the client and for the server.
const timeout = 5 * time.Second

// Beside returns the path of the forwarder's whois socket, which is in the same directory as the
// given status socket.
func Beside(socket string) string { return status.Beside(socket, "whois") }

// Serve answers queries on the Unix socket listener ln until ctx ends, and then removes the socket.
// A connection that is not in the table may belong to an older process of the forwarder that is
// draining. Serve then asks the processes at the sockets that older returns.
func Serve(ctx context.Context, ln net.Listener, t *Table, older func() []string) {
	mux := http.NewServeMux()
	// Only requests for this host name are served, as on the status socket.
	mux.HandleFunc("GET agent/whois", func(w http.ResponseWriter, r *http.Request) {
		uid := unixsock.UID(r)
		if as, err := strconv.ParseUint(r.URL.Query().Get("as"), 10, 32); err == nil && int(uid) == os.Geteuid() {
			uid = uint32(as)
		}
		if !t.mayQuery(uid) {
			refuse(w, http.StatusForbidden, fmt.Sprintf("uid %d is no service's user, want root or the account of the service: write it as the service's user in the topology", uid))
			return
		}
		t.answer(w, r, uid, older)
	})
	named := func(uid uint32) bool { return int(uid) == os.Geteuid() || t.mayQuery(uid) }
	unixsock.Serve(ctx, ln, timeout, named, mux)
}

func (t *Table) answer(w http.ResponseWriter, r *http.Request, uid uint32, older func() []string) {
	q := r.URL.Query()
	from, errFrom := netip.ParseAddrPort(q.Get("from"))
	to, errTo := netip.ParseAddrPort(q.Get("to"))
	protocol := document.Protocol(q.Get("protocol"))
	switch {
	case errFrom != nil:
		refuse(w, http.StatusBadRequest, fmt.Sprintf("from %q, want the address that the connection comes from: 127.0.0.1:43210", q.Get("from")))
		return
	case errTo != nil && q.Get("to") != "":
		refuse(w, http.StatusBadRequest, fmt.Sprintf("to %q, want the address that the service listens on: 127.0.0.1:8080", q.Get("to")))
		return
	case protocol != document.TCP && protocol != document.UDP:
		refuse(w, http.StatusBadRequest, fmt.Sprintf("protocol %q, want %q or none", string(protocol), document.UDP))
		return
	}
	// A service that listens on all addresses, including IPv6, sees an IPv4 caller as
	// ::ffff:127.0.0.1.
	from, to = unmap(from), unmap(to)
	ctx, cancel := context.WithTimeout(r.Context(), timeout/2)
	defer cancel()
	found := t.Lookup(ctx, uid, protocol, from, to)
	for _, socket := range older() {
		if len(found) > 0 {
			break
		}
		if a, err := Fetch(ctx, socket, Query{from, to, protocol, &uid}); err == nil {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		refuse(w, http.StatusNotFound, fmt.Sprintf("no connection of the forwarder comes from %s to a service whose user uid %d is: it has ended, or something else connected", from, uid))
	case 1:
		httpreply.JSON(w, http.StatusOK, found[0])
	default:
		refuse(w, http.StatusConflict, fmt.Sprintf("%d connections come from %s, to different addresses: want to= the one that the service listens on", len(found), from))
	}
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// refusal is the response to a query without a result. It contains the reason.
type refusal struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, code int, why string) {
	httpreply.JSON(w, code, refusal{why})
}
