// Package deploy installs the flake's version of a host on the host over SSH. The version stays in
// force only if the host reports that it runs this version.
//
// Before any change, the host arms a rollback: unless the change is confirmed in time, the host
// restores the old version, whatever happens to its network or to this process (package confirm of
// activation). Then deploy installs the bundle, or runs nixos-rebuild. The proof of success is a
// report from the host, received through the cluster's providers, that names the documents and the
// change. Deploy then confirms the new version over a new SSH connection.
package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/nix/operator/bundle"
	"github.com/florete/florete/nix/operator/compile"
)

// Host is a host to deploy, with its new version.
type Host struct {
	Name      string
	Topology  compile.Host
	Documents []document.Document
	Bundle    *bundle.Bundle // nil on NixOS
	Issues    bool           // whether it is the only host that issues certificates
}

// Read returns the topology of a cluster, and the named hosts with everything that Run deploys to
// them. It takes the programs for bundles from the directory bin or, if bin is empty, from the
// directory of the running program.
func Read(ctx context.Context, src compile.Source, names []string, bin string) (t compile.Topology, hosts []Host, err error) {
	if t, err = compile.ReadTopology(ctx, src); err != nil {
		return t, nil, err
	}
	c, err := compile.Compile(ctx, src, names...)
	if err != nil {
		return t, nil, err
	}
	nixos, err := compile.NixOSHosts(ctx, src)
	if err != nil {
		return t, nil, err
	}
	for _, name := range names {
		h := Host{Name: name, Topology: t.Hosts[name], Documents: c.Documents[name]}
		h.Issues = slices.Equal(t.Providers[document.KindCert].Hosts, []string{name})
		if !slices.Contains(nixos, name) {
			b, err := bundle.Read(ctx, src, c, name, bin, bundle.BinTar)
			if err != nil {
				return t, nil, err
			}
			h.Bundle = &b
		}
		hosts = append(hosts, h)
	}
	return t, hosts, nil
}

// Deployment contains the settings of florctl deploy, which installs documents and programs on
// hosts, and functions that call the config providers.
type Deployment struct {
	Flake   string        // flake reference for nixos-rebuild
	Timeout time.Duration // time after which an unconfirmed host rolls back
	Jobs    int           // number of hosts that are deployed at a time

	// Reports returns the last report of each host. The keys are the names of the hosts.
	Reports func(ctx context.Context) (map[string]hostreport.Kept, error)

	// Claim reserves a place in the disruption budgets of a host for the given duration. If a
	// budget does not permit a change of the host now, Claim returns the reason. Release ends the
	// reservation. Both are called only for the hosts in Limited.
	Claim   func(ctx context.Context, host string, lasts time.Duration) (waits string, err error)
	Release func(ctx context.Context, host string) error
	Limited map[string]bool // hosts in disruption budgets

	// Log prints a message about the progress on a host.
	Log func(host, text string)
}

// poll is the interval at which reports are requested.
const poll = 2 * time.Second

// grace is the time for which deploy waits for the rollback of a host after the deadline of the
// rollback.
const grace = 2 * time.Minute

// Run deploys the hosts, at most Jobs of them at the same time. If a host fails, Run continues with
// the others, and returns the errors of all failed hosts joined.
func (d Deployment) Run(ctx context.Context, hosts []Host) error {
	var group sync.WaitGroup
	slots := make(chan struct{}, d.Jobs)
	failed := make([]error, len(hosts))
	for i, h := range hosts {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := d.host(ctx, h); err != nil {
				d.Log(h.Name, "FAILED: "+err.Error())
				failed[i] = fmt.Errorf("host %s: %w", h.Name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// host deploys one host.
func (d Deployment) host(ctx context.Context, h Host) (failed error) {
	remote, err := connect(ctx, h)
	if err != nil {
		return err
	}
	defer remote.close()
	if err := d.canReport(ctx, h, remote); err != nil {
		return err
	}
	if d.Limited[h.Name] {
		if err := d.claim(ctx, h); err != nil {
			return err
		}
		// After a failure the claim stays until it expires, because the last report of the host
		// may be from before the deployment.
		defer func() {
			if failed == nil {
				failed = d.Release(ctx, h.Name)
			}
		}()
	}
	put := d.install
	if h.Bundle == nil {
		put = d.rebuild
	}
	pending, err := put(ctx, h, remote)
	if err != nil && pending != nil && !cutOff(err) {
		return fmt.Errorf("%w; change %s may be partly in force, and goes back by itself by %s: run flor status on the host", err, pending.ID, pending.Deadline.UTC().Format(time.TimeOnly))
	}
	if err == nil {
		err = d.reported(ctx, h, pending)
	}
	if pending == nil {
		return err
	}
	if err == nil {
		_, err = remote.run(ctx, nil, remote.flor+" sync --confirm "+pending.ID)
	}
	if err != nil {
		return d.wentBack(ctx, remote, pending, err)
	}
	d.Log(h.Name, fmt.Sprintf("deployed: change %s is confirmed", pending.ID))
	return nil
}

// claim waits until the disruption budgets of a host permit a change, and then reserves a place in
// them. It gives up if the reason to wait stays the same for longer than another deployment may
// take.
func (d Deployment) claim(ctx context.Context, h Host) error {
	waited, since := "", time.Now()
	for {
		waits, err := d.Claim(ctx, h.Name, d.Timeout+grace)
		switch {
		case err != nil:
			return fmt.Errorf("its disruption budget: %w", err)
		case waits == "":
			return nil
		case waits != waited:
			d.Log(h.Name, strings.TrimPrefix(waits, h.Name+": "))
			waited, since = waits, time.Now()
		case time.Since(since) > d.Timeout+grace:
			return fmt.Errorf("not deployed: it %s: repair the other host, or remove rollout.atOnce from the flake and publish", strings.TrimPrefix(waits, h.Name+": "))
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// canReport returns an error if the host could not report after the deployment. This is so if the
// host has no certificate, and cannot get one before a person acts. The host would roll back in any
// case.
func (d Deployment) canReport(ctx context.Context, h Host, remote *remote) error {
	node, admission := hostdir.Current(remote.state.Need("cert-node")), remote.state.Admission()
	out, err := remote.run(ctx, nil, fmt.Sprintf("test -e %s || test -e %s || echo no certificate", node, admission))
	if err != nil || len(out) == 0 {
		return err
	}
	if h.Topology.SSHHostKey == "" {
		return fmt.Errorf("it joins with a token, and cannot report before its device is approved: %s, then florctl join token create --host %s, and flor join - on the host", d.byHand(h), h.Name)
	}
	sign := d.byHand(h) + ", then sign its issuing certificate and publish, as docs/tutorial/three-machines.md does"
	if h.Issues {
		return fmt.Errorf("it issues the certificates of the cluster, and cannot report before its issuing certificate is signed: %s", sign)
	}
	_, unanswered := d.Reports(ctx)
	if unanswered == nil {
		return nil
	}
	remedy := "flor doctor on the provider host"
	switch kinds := h.Topology.Kinds; {
	case slices.Contains(kinds, document.KindCert):
		remedy = sign
	case slices.Contains(kinds, document.KindConfig):
		remedy = d.byHand(h) + ", then publish"
	}
	return fmt.Errorf("it cannot report, because no provider answers: %w: %s", unanswered, remedy)
}

// byHand returns the command that installs the host's version without waiting for a report of the
// host.
func (d Deployment) byHand(h Host) string {
	if h.Bundle == nil {
		return fmt.Sprintf("nixos-rebuild switch --flake %s#%s --target-host root@%[2]s", d.Flake, h.Name)
	}
	return fmt.Sprintf("florctl bundle --host %s --out - | ssh root@%[1]s 'tar xzf - && %s/install.sh'", h.Name, h.Topology.Instance.Unit(h.Name))
}

// install arms the rollback of the host, copies the bundle to it, and runs the installer. It
// returns the pending change, or nil if nothing changes.
func (d Deployment) install(ctx context.Context, h Host, remote *remote) (*hostdir.Change, error) {
	m := h.Topology.Instance
	base := path.Join("/usr/local/lib", m.String(), "deploy")
	dir := path.Join(base, m.Unit(h.Name))
	if err := d.send(ctx, h, remote, base, dir); err != nil {
		return nil, err
	}
	remote.flor = path.Join(dir, "bin/flor") + instanceFlag(m)
	out, err := remote.run(ctx, nil, fmt.Sprintf("%s sync arm --json --confirm-timeout %s %s", remote.flor, d.Timeout, dir))
	if err != nil {
		return nil, err
	}
	var pending *hostdir.Change
	if len(out) > 0 {
		pending = new(hostdir.Change)
		if err := json.Unmarshal(out, pending); err != nil {
			return nil, fmt.Errorf("flor sync arm: %w", err)
		}
		d.Log(h.Name, fmt.Sprintf("installing: change %s, which goes back at %s unless it is confirmed", pending.ID, pending.Deadline.UTC().Format(time.TimeOnly)))
	}
	out, err = remote.run(ctx, nil, dir+"/install.sh")
	if err == nil && pending == nil {
		d.Log(h.Name, lastLine(out))
	}
	return pending, err
}

// send copies the bundle to the directory dir of the host, which is in base. Programs that are
// installed on the host are copied from there, not over the network.
func (d Deployment) send(ctx context.Context, h Host, remote *remote, base, dir string) error {
	installed, digests := bundle.BinTar(h.Topology.Instance), h.Bundle.Programs.Digests()
	out, err := remote.run(ctx, nil, fmt.Sprintf("cd %s && sha256sum flor flor-provider 2>/dev/null || true", installed))
	if err != nil {
		return err
	}
	maps.DeleteFunc(digests, func(name, digest string) bool {
		return !slices.Contains(strings.Split(string(out), "\n"), digest+"  "+name)
	})
	present := slices.Sorted(maps.Keys(digests))
	var packed bytes.Buffer
	if err := h.Bundle.WriteTarWithout(&packed, present); err != nil {
		return err
	}
	text := fmt.Sprintf("copying %s, %d KiB", h.Bundle.Version(), packed.Len()>>10)
	if len(present) > 0 {
		text += "; the host has " + strings.Join(present, " and ")
	}
	d.Log(h.Name, text)
	_, err = remote.run(ctx, &packed, unpack(remote.state.ChangeFile(), base, dir, installed, digests))
	return err
}

// unpack returns a shell command that unpacks a bundle from its input in the directory base, and
// completes it in dir with programs from the directory installed. They must have the given SHA-256
// digests. While a change is pending, the command fails and changes nothing.
func unpack(change, base, dir, installed string, programs map[string]string) string {
	command := fmt.Sprintf("[ ! -e %s ] || { echo 'another change of this host is pending: flor status' >&2; exit 1; }; umask 022; rm -rf %s && mkdir -p %s/bin && tar xzf - -C %[2]s",
		change, base, dir)
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		from, to := path.Join(installed, name), path.Join(dir, "bin", name)
		command += fmt.Sprintf(" && cp -p %s %s && { echo '%s  %[2]s' | sha256sum --check --status || { echo '%[1]s was replaced meanwhile: run florctl deploy again' >&2; exit 1; }; }",
			from, to, programs[name])
	}
	return command
}

// reported waits until a report of the host names the new documents and the change.
func (d Deployment) reported(ctx context.Context, h Host, pending *hostdir.Change) error {
	d.Log(h.Name, "waiting for its report")
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	missing := errors.New("no provider was asked")
	for {
		reports, err := d.Reports(ctx)
		if err == nil {
			err = names(reports[h.Name], h.Documents, pending)
		}
		if err == nil {
			d.Log(h.Name, "has reported the new documents")
			return nil
		}
		if ctx.Err() == nil {
			missing = err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("no report within %s: %w", d.Timeout, missing)
		}
	}
}

// names returns an error that tells which documents or which change are missing in a report.
func names(received hostreport.Kept, documents []document.Document, pending *hostdir.Change) error {
	if received.Sequence == 0 {
		return errors.New("it has never reported")
	}
	r, err := received.Decode()
	if err != nil {
		return err
	}
	if pending != nil && (r.Pending == nil || r.Pending.ID != pending.ID) {
		return errors.New("its last report is older than the deployment")
	}
	for _, want := range documents {
		i := slices.IndexFunc(r.Documents, func(d document.Reported) bool { return d.Kind == want.Envelope.Kind })
		if i < 0 {
			return fmt.Errorf("it reports no %s", want.Envelope.Kind)
		}
		if got := r.Documents[i]; got.Digest != want.Envelope.Digest {
			return fmt.Errorf("it reports %s %d, not %d", got.Kind, got.Serial, want.Envelope.Serial)
		}
	}
	return nil
}

// wentBack waits until the host has rolled back, and returns the error of the deployment. The
// argument because is the reason for the rollback.
func (d Deployment) wentBack(ctx context.Context, remote *remote, c *hostdir.Change, because error) error {
	d.Log(remote.name, fmt.Sprintf("%v: change %s goes back by %s", because, c.ID, c.Deadline.UTC().Format(time.TimeOnly)))
	ctx, cancel := context.WithDeadline(ctx, c.Deadline.Time.Add(grace))
	defer cancel()
	for {
		out, err := remote.run(ctx, nil, fmt.Sprintf("test ! -e %s && cat %s", remote.state.ChangeFile(), remote.state.UndoneFile()))
		var undone hostdir.Change
		if err == nil && json.Unmarshal(out, &undone) == nil && undone.ID == c.ID {
			return fmt.Errorf("it went back, since it was not confirmed: %w", because)
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return fmt.Errorf("nobody confirmed it, and it does not answer, so florctl does not know whether it went back: %w", because)
		}
	}
}

func instanceFlag(m hostdir.Instance) string {
	if m == "" {
		return ""
	}
	return " --instance=" + string(m)
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
