package authority

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
)

// rotationPoll is the interval at which Watch examines the rotation. Hosts check for changes to
// report at the same interval.
const rotationPoll = 10 * time.Second

// Watch carries out the steps of the rotation, each as soon as it is ready, until the old root is
// retired. It calls examine again and again to learn how far the rotation has come. Watch can be
// interrupted and started again at any time.
func (r *Rotation) Watch(ctx context.Context, examine func() (*Rotation, error), how *RootKey, open Opening) error {
	w := r.in.Out
	said, signed := "", false
	say := func(text string) {
		if text != said {
			said = text
			fmt.Fprint(w, text)
		}
	}
	for {
		if r.Stage == ca.Activated && r.pinned(r.Former) && !signed {
			err := r.signIssuing(ctx, open)
			if signed = err == nil; !signed {
				var commands strings.Builder
				r.sign(&commands)
				say(fmt.Sprintf("%s\n%s", terminal.Text(err.Error()), commands.String()))
			}
		}
		if r.Ready() {
			last := r.Stage == ca.Activated
			if err := r.step(how); err != nil || last {
				return err
			}
		} else {
			say(r.progress())
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(rotationPoll):
			}
		}
		for {
			next, err := examine()
			if err == nil {
				r = next
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			say(fmt.Sprintf("%s: it is tried again every %s\n", terminal.Text(err.Error()), rotationPoll))
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(rotationPoll):
			}
		}
	}
}

// progress describes which conditions of the next step hold, for the operator who watches.
func (r *Rotation) progress() string {
	var b strings.Builder
	root, is := r.Next, "the next root"
	if r.Stage == ca.Activated {
		root, is = r.Active, "the new root"
	}
	if f := trust.Fingerprint(root); r.edit == "" || len(r.waiting) > 0 {
		fmt.Fprintf(&b, "%s: trusted by %d of %d hosts, certificates of %d lead to it\n", is, r.by.Trusting(f), r.all, r.by.Leading(f))
	}
	if r.edit != "" {
		fmt.Fprintf(&b, "next: %s\n", r.edit)
		return b.String()
	}
	for _, host := range r.waitsFor() {
		fmt.Fprintf(&b, "waits for %s: %s\n", host, terminal.Text(r.waiting[host]))
	}
	return b.String()
}

// signIssuing signs the issuing certificates that the active root has not signed yet, over SSH, and
// the operator's enrolment certificate.
func (r *Rotation) signIssuing(ctx context.Context, open Opening) error {
	var root *ca.Authority
	done := func() {}
	defer func() { done() }()
	loaded := func() error {
		if root != nil {
			return nil
		}
		a, end, err := load(r.dir.Path("ca.crt"), r.dir.Path("ca.key"), open)
		if err == nil {
			root, done = a, end
		}
		return err
	}
	var failed []error
	for _, host := range r.in.Topology.Providers[cert.Name].Hosts {
		if err := r.signIssuingOf(ctx, host, func() (*ca.Authority, error) { err := loaded(); return root, err }); err != nil {
			failed = append(failed, err)
		}
	}
	enrolment := r.dir.Path(ca.EnrolmentCertificate)
	if b, err := os.ReadFile(enrolment); err == nil && !r.signedByActive(b) {
		err := loaded()
		if err == nil {
			_, err = r.dir.Enrolment(root, ca.IssuingLifetime, time.Now())
		}
		if err != nil {
			failed = append(failed, err)
		} else {
			fmt.Fprintf(r.in.Out, "%s: signed by the new root\n", enrolment)
		}
	}
	return errors.Join(failed...)
}

// signIssuingOf signs the issuing certificate of one host.
func (r *Rotation) signIssuingOf(ctx context.Context, host string, root func() (*ca.Authority, error)) error {
	instance := r.in.Topology.Hosts[host].Instance
	dir := "/var/lib/" + instance.Unit("provider") + "/cert/"
	var crt, csr, installed bytes.Buffer
	if err := client.AsRoot(ctx, host, nil, &crt, "cat", dir+"issuing.crt"); err == nil && r.signedByActive(crt.Bytes()) {
		return nil
	}
	if err := client.AsRoot(ctx, host, nil, &csr, "cat", dir+"issuing.csr"); err != nil {
		return err
	}
	a, err := root()
	if err != nil {
		return err
	}
	issuing, err := a.SignIssuing(csr.Bytes(), ca.IssuingLifetime, time.Now())
	if err != nil {
		return fmt.Errorf("%s: issuing.csr: %w", host, err)
	}
	if err := client.AsRoot(ctx, host, bytes.NewReader(ca.EncodeCertificates(issuing)), &installed, instance.Program("flor-provider"), "install-cert"); err != nil {
		return err
	}
	fmt.Fprintf(r.in.Out, "%s issues below the new root until %s\n", host, issuing.NotAfter.Format(time.DateOnly))
	return nil
}

// signedByActive reports whether a certificate was signed by the active root.
func (r *Rotation) signedByActive(pem []byte) bool {
	all, err := trust.ParseCertificates(pem)
	return err == nil && all[0].CheckSignatureFrom(r.Active) == nil
}
