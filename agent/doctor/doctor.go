// Package doctor examines a host. It finds the reasons why the host is not in the state that its
// manifest describes, and the command that fixes each. It changes nothing.
package doctor

import (
	"cmp"
	"context"
	"net"
	"sync"
	"time"

	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// Config describes the host to examine. Only Instance, Layout and Socket are required.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout // state of the host
	Socket   string         // status socket of the forwarder
	HostKey  string         // SSH host key; default DefaultHostKey
	Hosts    string         // hosts(5); default /etc/hosts
	Workload string         // socket of the Workload API; default Instance.Workload
	Etc      string         // directory of a provider's settings; default Instance.Etc

	// Units returns the state of units; default units.ListLogs.
	Units func(ctx context.Context, names []string) ([]units.Unit, error)

	// Guards reports whether the table of package guard exists; by default nft is asked.
	Guards func(ctx context.Context) bool
}

// DefaultHostKey is the path of OpenSSH's ed25519 host key.
const DefaultHostKey = "/etc/ssh/ssh_host_ed25519_key"

// timeout bounds each request over the network.
const timeout = 5 * time.Second

// Report is the result of an examination. Fields may be added but not removed.
type Report struct {
	Host   string  `json:"host"` // empty without a manifest
	Checks []Check `json:"checks"`
}

// Check is one part of the examination.
type Check struct {
	Name     string    `json:"name"`
	Seen     string    `json:"seen"` // description of what was examined
	Findings []Finding `json:"findings"`
}

// Finding is a problem with its remedy: a command, or an action for a person if no command is
// sufficient.
type Finding struct {
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"` // command to run on this host, or, with the prefix "on HOST: ", on another
	Do      string `json:"do,omitempty"`
}

func fix(problem, command string) Finding { return Finding{Problem: problem, Fix: command} }
func do(problem, what string) Finding     { return Finding{Problem: problem, Do: what} }

// Findings returns the number of findings.
func (r Report) Findings() (n int) {
	for _, c := range r.Checks {
		n += len(c.Findings)
	}
	return n
}

// checks lists all checks. A check comes after those on which it depends.
var checks = []struct {
	name    string
	without bool // also run without a manifest
	examine func(*host, context.Context) (seen string, findings []Finding)
}{
	{"disk", true, (*host).disk},
	{"documents", true, (*host).documents},
	{"clock", false, (*host).clock},
	{"names", false, (*host).names},
	{"providers", false, (*host).providers},
	{"accounts", false, (*host).accounts},
	{"needs", false, (*host).needs},
	{"identity", false, (*host).identity},
	{"forwarders", false, (*host).forwarders},
	{"agent", false, (*host).agent},
	{"upstreams", false, (*host).upstreams},
	{"units", true, (*host).units},
	{"permissions", false, (*host).permissions},
	{"guard", false, (*host).guard},
	{"workload", false, (*host).workload},
	{"kernel", true, (*host).kernel},
}

// host is the host being examined. It does not change while the checks run.
type host struct {
	Config
	manifest   document.Manifest
	envelope   document.Envelope // envelope of the manifest
	serial     int64
	unread     error // reason why there is no manifest
	identities *hostdir.SVIDSet
	unloaded   []error // problems of the SVIDs
	answers    []*answer
	now        time.Time
}

// Run examines a host.
func Run(ctx context.Context, c Config) Report {
	h := &host{Config: c, identities: &hostdir.SVIDSet{}, now: time.Now()}
	h.HostKey = cmp.Or(c.HostKey, DefaultHostKey)
	h.Hosts = cmp.Or(c.Hosts, "/etc/hosts")
	h.Workload = cmp.Or(c.Workload, c.Instance.Workload())
	h.Etc = cmp.Or(c.Etc, c.Instance.Etc())
	if h.Units == nil {
		h.Units = units.ListLogs
	}
	h.read()
	h.answers = h.request(ctx)

	r := Report{Host: h.manifest.Host, Checks: make([]Check, len(checks))}
	var all sync.WaitGroup
	for i, c := range checks {
		r.Checks[i] = Check{Name: c.name, Seen: "nothing without a manifest"}
		if h.unread == nil || c.without {
			all.Go(func() { r.Checks[i].Seen, r.Checks[i].Findings = c.examine(h, ctx) })
		}
	}
	all.Wait()
	for i := range r.Checks {
		r.Checks[i].Findings = append([]Finding{}, r.Checks[i].Findings...)
	}
	return r
}

// read opens the manifest in force and the SVIDs.
func (h *host) read() {
	doc, err := h.Layout.Manifest()
	if h.unread = err; err != nil {
		return
	}
	h.manifest, h.envelope, h.serial = doc.Manifest(), doc.Envelope, doc.Envelope.Serial
	h.identities, h.unloaded = hostdir.LoadSVIDs(h.Layout, h.manifest, h.identities)
}

// restart returns the command that restarts a unit of this instance.
func (h *host) restart(unit string) string {
	return "systemctl restart " + h.Instance.Unit(unit+".service")
}

// examineOn returns the command that examines another host, for problems that cannot be seen from
// this one. The instance of the other host is not known.
func examineOn(name string) string { return "on " + name + ": flor doctor" }

// state returns the state of a need, or the zero NeedState if it cannot be read.
func (h *host) state(id string) hostdir.NeedState {
	s, _ := h.Layout.NeedState(id)
	return s
}

// isAddress reports whether the host in host:port is an IP address.
func isAddress(hostport string) (name string, literal bool) {
	name, _, err := net.SplitHostPort(hostport)
	return name, err != nil || net.ParseIP(name) != nil
}
