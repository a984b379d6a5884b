package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
)

// Session is an open session at a service of a host.
type Session struct {
	Host string `json:"host"`
	sessions.Session
}

// Hosts calls the hosts of a cluster where people open sessions, either through the forwarder of
// this host or over SSH as root. Through the forwarder, it calls the services that publish the API
// of each host.
type Hosts struct {
	topology compile.Topology
	overSSH  bool
	http     *http.Client
}

// ReachHosts returns a client of the hosts of a cluster. The argument how is the way to connect to
// them, "forwarder" or "ssh".
func ReachHosts(t compile.Topology, how string) (Hosts, error) {
	if how != "forwarder" && how != "ssh" {
		return Hosts{}, fmt.Errorf("--via %q, want forwarder or ssh", how)
	}
	return Hosts{t, how == "ssh", &http.Client{Timeout: hostTimeout, Transport: &http.Transport{
		Proxy:       socksListener,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	}}}, nil
}

const (
	hostTimeout  = 20 * time.Second
	longestReply = 16 << 20
)

// names returns the hosts that run a service at which people open sessions, sorted.
func (h Hosts) names() []string {
	found := map[string]bool{}
	for _, s := range h.topology.Services {
		if s.Protocol == "ssh" || s.Protocol == "rdp" || s.Protocol == "vnc" {
			for _, host := range s.Hosts {
				found[host] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Sessions returns the open sessions at all hosts, oldest first. For each host that does not
// answer, it prints a warning to warnings. If no host answers, it returns an error.
func (h Hosts) Sessions(ctx context.Context, warnings io.Writer) ([]Session, error) {
	all, failed := []Session{}, []error(nil)
	names := h.names()
	var mu sync.Mutex
	var wg sync.WaitGroup
	most := make(chan struct{}, 16)
	for _, host := range names {
		wg.Go(func() {
			most <- struct{}{}
			defer func() { <-most }()
			open, err := h.sessions(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, fmt.Errorf("host %s: %w", host, err))
			}
			for _, s := range open {
				all = append(all, Session{host, s})
			}
		})
	}
	wg.Wait()
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(failed) > 0 && len(failed) == len(names) {
		return nil, errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintln(warnings, "warning:", err)
	}
	slices.SortFunc(all, func(a, b Session) int { return sessions.Compare(a.Session, b.Session) })
	return all, nil
}

func (h Hosts) sessions(ctx context.Context, host string) (open []sessions.Session, err error) {
	if h.overSSH {
		var out bytes.Buffer
		if err := h.root(ctx, host, &out, "sessions", "--json"); err != nil {
			return nil, err
		}
		err = json.Unmarshal(out.Bytes(), &open)
		return open, err
	}
	b, err := h.call(ctx, host, http.MethodGet, readSocket, "/status")
	if err != nil {
		return nil, err
	}
	var report struct{ Sessions []sessions.Session }
	err = json.Unmarshal(b, &report)
	return report.Sessions, err
}

// End ends a session, and returns the host's message about it. The host records who ended it.
func (h Hosts) End(ctx context.Context, s Session) (string, error) {
	if h.overSSH {
		var out strings.Builder
		err := h.root(ctx, s.Host, &out, "sessions", "end", s.ID)
		return strings.TrimSpace(out.String()), err
	}
	b, err := h.call(ctx, s.Host, http.MethodPost, adminSocket, "/end?session="+url.QueryEscape(s.ID))
	return strings.TrimSpace(string(b)), err
}

func (h Hosts) root(ctx context.Context, host string, out io.Writer, args ...string) error {
	return AsRoot(ctx, host, nil, out, append([]string{h.topology.Hosts[host].Instance.Program("flor")}, args...)...)
}

// The sockets of a host's API, as they follow the name of its directory below /run.
const (
	readSocket  = "-host.sock"
	adminSocket = "-host-refetch.sock"
)

// call sends a request to one socket of a host's API, through the service that publishes it.
func (h Hosts) call(ctx context.Context, host, method, socket, request string) ([]byte, error) {
	name, at, err := h.service(host, path.Base(h.topology.Hosts[host].Instance.Run())+socket)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+at+request, nil)
	if err != nil {
		return nil, err
	}
	answer, err := h.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: flor ping %s, or use --via ssh", err, name)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, longestReply))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", name, answer.Status, terminal.Text(strings.TrimSpace(string(b[:min(len(b), 1<<10)]))))
	}
	return b, err
}

// service returns the short name, and the address for callers, of the service of a host that
// publishes a Unix socket with a name.
func (h Hosts) service(host, socket string) (name, at string, err error) {
	for _, name := range slices.Sorted(maps.Keys(h.topology.Services)) {
		s := h.topology.Services[name]
		if !strings.HasPrefix(s.Upstream, "unix:/") || path.Base(s.Upstream) != socket || !slices.Contains(s.Hosts, host) {
			continue
		}
		for _, id := range s.IDs {
			d, err := spiffe.Dial(id)
			if err == nil && (id.Node() == host || id.Node() == "" && len(s.Hosts) == 1) {
				at := spiffe.Render(d)
				return strings.TrimSuffix(at, "."+h.topology.TrustDomain+spiffe.Suffix), net.JoinHostPort(at, fmt.Sprint(s.ListenPort)), nil
			}
		}
	}
	return "", "", fmt.Errorf("no service publishes unix:/run/%s there: write one with scope = \"node\", or use --via ssh", socket)
}

// PrintSessions writes sessions as a table for people.
func PrintSessions(w io.Writer, all []Session, now time.Time) error {
	t := terminal.NewTable(w, append([]any{"HOST"}, sessions.Head...)...)
	for _, s := range all {
		t.Row(append([]any{s.Host}, s.Cells(now)...)...)
	}
	return t.Flush()
}
