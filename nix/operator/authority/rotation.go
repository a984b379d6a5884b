package authority

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
)

// Rotation describes how far the replacement of a cluster's root by a new one has come, and what
// comes next. It is computed from the files in the root's directory, the flake and the reports of
// hosts. Nothing else is stored about a rotation.
type Rotation struct {
	ca.Rotation
	dir  ca.Dir
	in   published.Cluster
	pins []*x509.Certificate // roots in the flake
	by   fleet.Roots
	all  int // number of hosts to wait for

	waiting map[string]string // hosts that delay the next step, with the reasons
	edit    string            // change of the flake that is needed first
	next    string            // description of the next step
}

// Examine finds out how far the rotation of a cluster's root has come. The root's files are in dir.
// The last argument is a list of hosts that will never come back, so that the rotation does not
// wait for them.
func Examine(ctx context.Context, dir ca.Dir, cluster func() (published.Cluster, error), without []string) (*Rotation, error) {
	r := &Rotation{dir: dir}
	var err error
	if r.Rotation, err = dir.Read(); err != nil {
		return nil, err
	}
	if r.in, err = cluster(); err != nil {
		return nil, err
	}
	t := r.in.Topology
	if of := r.Active.URIs[0].Host; of != t.TrustDomain {
		return nil, fmt.Errorf("%s: found the root of trust domain %s, but cluster %s has trust domain %s: pass another --dir", dir, of, t.Name, t.TrustDomain)
	}
	roots, err := trust.NewRoots(t.TrustDomain, t.Trust.Roots)
	if err != nil {
		return nil, err
	}
	r.pins = roots.Certificates()
	reports, err := r.in.Providers.Reports(ctx)
	if err != nil {
		return nil, err
	}
	r.by, err = fleet.ReadRoots(t, reports, without, time.Now())
	gone := slices.Compact(slices.Sorted(slices.Values(without)))
	r.all = len(t.Hosts) - len(gone)
	if err == nil {
		err = r.examine()
	}
	return r, err
}

func (r *Rotation) pinned(c *x509.Certificate) bool { return slices.ContainsFunc(r.pins, c.Equal) }

// examine determines the next step of the rotation and the conditions that must hold before it.
func (r *Rotation) examine() error {
	if !r.pinned(r.Active) && r.Stage != ca.Activated {
		return fmt.Errorf("cluster %s: trust.roots lacks %s, the root that signs at present: add it again", r.in.Topology.Name, r.dir.Path("ca.crt"))
	}
	switch r.Stage {
	case ca.Steady:
		r.next = "a new root is made"
	case ca.Prepared:
		r.next, r.waiting = "the new root signs", r.by.Unacknowledged(trust.Fingerprint(r.Next))
		if !r.pinned(r.Next) {
			r.edit = fmt.Sprintf("copy %s into the flake as %s, list it in trust.roots beside the present one and publish; deploy hosts whose documents come with their system alone", r.dir.Path("next.crt"), inFlake(r.Next))
		}
	case ca.Activated:
		if !r.pinned(r.Active) {
			return fmt.Errorf("cluster %s: trust.roots lacks %s, the root that signs at present: add it again", r.in.Topology.Name, r.dir.Path("ca.crt"))
		}
		r.next, r.waiting = "the former root is retired", r.by.Unrenewed(trust.Fingerprint(r.Active))
		switch {
		case r.pinned(r.Former) && len(r.waiting) == 0:
			r.edit = "remove the former root from trust.roots and publish; deploy hosts whose documents come with their system alone"
			r.waiting = r.by.Trusted(trust.Fingerprint(r.Former))
		case !r.pinned(r.Former) && len(r.waiting) > 0:
			r.edit = "put the former root back into trust.roots, publish and deploy: certificates lead to it still"
		case !r.pinned(r.Former):
			r.waiting = r.by.Trusted(trust.Fingerprint(r.Former))
		}
	}
	return nil
}

// sign prints the commands with which the active root signs the issuing certificates.
func (r *Rotation) sign(w io.Writer) {
	fmt.Fprintln(w, "have it sign the issuing certificate of each host that issues:")
	for _, host := range r.in.Topology.Providers[cert.Name].Hosts {
		instance := r.in.Topology.Hosts[host].Instance
		fmt.Fprintf(w, "  ssh root@%s cat /var/lib/%s/cert/issuing.csr | florctl ca sign --ca-cert %s --ca-key %s | ssh root@%[1]s %[5]s install-cert\n",
			host, instance.Unit("provider"), r.dir.Path("ca.crt"), r.dir.Path("ca.key"), instance.Program("flor-provider"))
	}
	if exists(r.dir.Path(ca.EnrolmentCertificate)) {
		fmt.Fprintf(w, "and the operator's own:\n  florctl ca enrolment --dir %s\n", r.dir)
	}
}

// Print prints how far the rotation has come and which step is next. If that step cannot be taken
// yet, the error is fleet.ErrAttention.
func (r *Rotation) Print() error {
	w := r.in.Out
	t := terminal.NewTable(w, "ROOT", "UNTIL", "IN THE FLAKE", "TRUSTED BY", "CERTIFICATES OF", "IS")
	for _, c := range r.roots() {
		pinned := "no"
		if c.Pinned {
			pinned = "yes"
		}
		t.Row(c.Fingerprint[:16], c.Until.Format(time.DateOnly), pinned, fmt.Sprintf("%d of %d", c.Trusted, r.all), fmt.Sprintf("%d of %d", c.Leading, r.all), c.Role)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "rotation: %s\n", r.Stage)
	if r.edit != "" {
		fmt.Fprintln(w, "next:", r.edit)
	} else if r.Stage == ca.Activated && len(r.waiting) > 0 && r.pinned(r.Former) {
		r.sign(w)
	}
	for _, host := range r.waitsFor() {
		fmt.Fprintf(w, "waits for %s: %s\n", host, terminal.Text(r.waiting[host]))
	}
	if !r.Ready() {
		fmt.Fprintf(w, "then run florctl ca rotate, and %s; if a host is gone for good, pass --without HOST\n", r.next)
		return fleet.ErrAttention
	}
	return nil
}

// waitsFor returns the sorted names of the hosts that delay the next step.
func (r *Rotation) waitsFor() []string { return slices.Sorted(maps.Keys(r.waiting)) }

// Ready reports whether the next step of the rotation can be taken now. It returns false if the
// flake must be changed first, or if the step must wait for a host.
func (r *Rotation) Ready() bool { return r.edit == "" && len(r.waiting) == 0 }

// root is a root in the flake or in the directory.
type root struct {
	Fingerprint string        `json:"fingerprint"`
	Until       unixtime.Time `json:"until"`
	Role        string        `json:"role"`
	Pinned      bool          `json:"pinned"`
	Trusted     int           `json:"trusted"` // number of hosts that trust it
	Leading     int           `json:"leading"` // number of hosts with certificates below it
}

// roots returns all roots in the flake and in the directory, without duplicates.
func (r *Rotation) roots() []root {
	seen := slices.Clone(r.pins)
	for _, c := range []*x509.Certificate{r.Active, r.Next, r.Former} {
		if c != nil && !slices.ContainsFunc(seen, c.Equal) {
			seen = append(seen, c)
		}
	}
	all := []root{}
	for _, c := range seen {
		f := trust.Fingerprint(c)
		all = append(all, root{f, unixtime.Of(c.NotAfter), r.role(c), r.pinned(c), r.by.Trusting(f), r.by.Leading(f)})
	}
	return all
}

func (r *Rotation) role(c *x509.Certificate) string {
	switch {
	case c.Equal(r.Active):
		return "active"
	case r.Next != nil && c.Equal(r.Next):
		return "next"
	case r.Former != nil && c.Equal(r.Former):
		return "former"
	}
	return "of no file in " + string(r.dir)
}

// JSON returns a value to encode in JSON that tells how far the rotation has come.
func (r *Rotation) JSON() any {
	waiting := r.waiting
	if waiting == nil {
		waiting = map[string]string{}
	}
	return struct {
		Stage   ca.Stage          `json:"stage"`
		Roots   []root            `json:"roots"`
		Edit    string            `json:"edit,omitempty"` // required change of the flake
		Waiting map[string]string `json:"waiting"`        // hosts that delay the next step, with the reasons
		Next    string            `json:"next"`
	}{r.Stage, r.roots(), r.edit, waiting, r.next}
}

// Take carries out the next step of the rotation, and prints what the operator must do afterwards.
// Call it only if Ready returns true.
func (r *Rotation) Take(how *RootKey) error {
	err := r.step(how)
	switch {
	case err != nil:
		return err
	case r.Stage == ca.Steady:
		fmt.Fprintln(r.in.Out, "then run florctl ca rotate again")
	case r.Stage == ca.Prepared:
		r.sign(r.in.Out)
	}
	return nil
}

// step takes the next step, which must be ready.
func (r *Rotation) step(how *RootKey) error {
	switch r.Stage {
	case ca.Steady:
		return r.prepare(how)
	case ca.Prepared:
		if err := r.dir.Activate(); err != nil {
			return err
		}
		fmt.Fprintf(r.in.Out, "%s: the new root, which signs now; the former one is %s, and hosts trust both\n", r.dir.Path("ca.crt"), r.dir.Path("old.crt"))
		return nil
	}
	u, err := onToken(r.dir.Path("old.key"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was removed already
		return err
	}
	if err := r.dir.Retire(); err != nil {
		return err
	}
	fmt.Fprintf(r.in.Out, "the former root is retired: no host trusts it, and %s and old.crt are removed\n", r.dir.Path("old.key"))
	if u != nil {
		fmt.Fprintf(r.in.Out, "the PKCS #11 token still has the key; delete it there: %s\n", terminal.Text(u.String()))
	}
	return nil
}

// inFlake returns the file name of a root in the flake. The name contains a part of the root's
// fingerprint, so that a rotation never overwrites another root.
func inFlake(root *x509.Certificate) string { return "root-" + trust.Fingerprint(root)[:8] + ".crt" }

// prepare creates the next root. Its private key must be protected at least as well as that of the
// current root.
func (r *Rotation) prepare(how *RootKey) error {
	key, present := r.dir.Path("next.key"), r.dir.Path("ca.key")
	sealed, err := ca.Sealed(present)
	if err != nil {
		return err
	}
	u, err := onToken(present)
	if err != nil {
		return err
	}
	if u != nil && how.token == "" {
		return fmt.Errorf("%s is on a PKCS #11 token, but %s would not be: pass --pkcs11 URI", present, key)
	}
	if sealed && how.token == "" && !how.Given() {
		return fmt.Errorf("%s is encrypted with age, but %s would not be: pass --seal-to RECIPIENT, --passphrase, --passphrase-file FILE or --pkcs11 URI", present, key)
	}
	var c *x509.Certificate
	_, err = how.makeRoot(r.in.Topology.TrustDomain, key, r.Active, func(a *ca.Authority, _ []age.Recipient) error {
		c = a.Certificate
		return r.dir.Prepare(c)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(r.in.Out, "%s: the next root, until %s, which signs nothing yet\n", r.dir.Path("next.crt"), c.NotAfter.Format(time.DateOnly))
	fmt.Fprintf(r.in.Out, "copy it into the flake as %s, list it in trust.roots beside the present one and publish\n", inFlake(c))
	return nil
}
