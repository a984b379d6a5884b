// Package doctor examines a host for flor doctor. It finds the reasons why the host differs from
// the state that its manifest describes, and names a command or an action that fixes each of them.
// It changes nothing on the host.
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

// Config describes the host that Run examines. Only Instance, Layout and Socket are required.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout // state directory of the host
	Socket   string         // status socket of the forwarder
	HostKey  string         // SSH host key; default DefaultHostKey
	Hosts    string         // hosts(5) file; default /etc/hosts
	Workload string         // socket of the Workload API; default Instance.Workload
	Etc      string         // directory with a provider's settings; default Instance.Etc
	SSH      string         // directory with the configuration of ssh and sshd; default /etc/ssh

	// Units returns the state of systemd units by their names. The default is units.ListLogs.
	Units func(ctx context.Context, names []string) ([]units.Unit, error)

	// Guards reports whether the nftables table of flor guard exists. By default, nft is asked.
	Guards func(ctx context.Context) bool
}

// DefaultHostKey is the path of the ed25519 host key of OpenSSH.
const DefaultHostKey = "/etc/ssh/ssh_host_ed25519_key"

// timeout is the time limit of each request over the network.
const timeout = 5 * time.Second

// Report is the result of an examination of a host. It is the JSON output of flor doctor --json, so
// fields may be added but not removed.
type Report struct {
	Host   string  `json:"host"` // empty if there is no manifest
	Checks []Check `json:"checks"`
}

// Check is one part of the examination of a host. For example, one check examines the clock, and
// another one the disk.
type Check struct {
	Name     string    `json:"name"`
	Seen     string    `json:"seen"` // what was examined, in words
	Findings []Finding `json:"findings"`
}

// Finding is a problem of the host together with its remedy. The remedy is a command (Fix) or, if
// no command is sufficient, an action of a person (Do).
type Finding struct {
	Problem string `json:"problem"`
	Fix     string `json:"fix,omitempty"` // command for this host, or for another host with the prefix "on HOST: "
	Do      string `json:"do,omitempty"`
}

func fix(problem, command string) Finding { return Finding{Problem: problem, Fix: command} }
func do(problem, what string) Finding     { return Finding{Problem: problem, Do: what} }

// Findings returns the total number of problems that the checks of the report have found.
func (r Report) Findings() (n int) {
	for _, c := range r.Checks {
		n += len(c.Findings)
	}
	return n
}

// checks lists all checks in the order in which they run. A check comes after the checks that it
// depends on.
var checks = []struct {
	name    string
	without bool // also runs without a manifest
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
	{"ssh", false, (*host).ssh},
	{"kernel", true, (*host).kernel},
}

// host is the host that is examined. The checks share it and do not change it.
type host struct {
	Config
	manifest   document.Manifest
	envelope   document.Envelope // envelope of the manifest
	serial     int64
	signing    string // document.Document.Signing of the manifest
	unread     error  // error that prevented reading the manifest
	identities *hostdir.SVIDSet
	unloaded   []error // problems of the SVIDs
	answers    []*answer
	now        time.Time
}

// Run examines a host with all checks and returns the report.
func Run(ctx context.Context, c Config) Report {
	h := &host{Config: c, identities: &hostdir.SVIDSet{}, now: time.Now()}
	h.HostKey = cmp.Or(c.HostKey, DefaultHostKey)
	h.Hosts = cmp.Or(c.Hosts, "/etc/hosts")
	h.Workload = cmp.Or(c.Workload, c.Instance.Workload())
	h.Etc = cmp.Or(c.Etc, c.Instance.Etc())
	h.SSH = cmp.Or(c.SSH, "/etc/ssh")
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

// read loads the manifest in force and the SVIDs of the host.
func (h *host) read() {
	doc, err := h.Layout.Manifest()
	if h.unread = err; err != nil {
		return
	}
	h.manifest, h.envelope, h.serial, h.signing = doc.Manifest(), doc.Envelope, doc.Envelope.Serial, doc.Signing()
	h.identities, h.unloaded = hostdir.LoadSVIDs(h.Layout, h.manifest, h.identities)
}

// restart returns the command that restarts a unit of this instance.
func (h *host) restart(unit string) string {
	return "systemctl restart " + h.Instance.Unit(unit+".service")
}

// examineOn returns the command that examines another host, for a problem that cannot be seen from
// this host. The command does not name an instance, because the instance of the other host is not
// known.
func examineOn(name string) string { return "on " + name + ": flor doctor" }

// state returns the state of the need with this ID. If the state cannot be read, state returns the
// zero NeedState.
func (h *host) state(id string) hostdir.NeedState {
	s, _ := h.Layout.NeedState(id)
	return s
}

// isAddress splits an address of the form host:port. It returns the host part as name. The result
// literal is true if the host part is an IP address and not a name.
func isAddress(hostport string) (name string, literal bool) {
	name, _, err := net.SplitHostPort(hostport)
	return name, err != nil || net.ParseIP(name) != nil
}
