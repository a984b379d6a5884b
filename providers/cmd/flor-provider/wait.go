package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

// openPolicies opens the policy in force. The policy comes from the host's closure or from the
// network.
func (p *process) openPolicies() error {
	policies, err := server.OpenPolicies(p.Policy(), p.Activation.Revocations(), p.kind, p.log)
	if err == nil {
		p.policies = policies
	}
	return notInForce(err)
}

// notInForce adds a remedy to the error of reading a policy, if no policy is in force.
func notInForce(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: flor activate puts it in force", err)
	}
	return err
}

// readPolicy reads the policy in force.
func readPolicy(s *settings.Settings) (document.Policy, error) {
	doc, err := document.Read(s.Policy(), document.DocPolicy)
	return doc.Policy(), notInForce(err)
}

// request makes the issuing key and the certificate request for it, if the process issues
// certificates.
func (p *process) request() error {
	if _, ok := p.Section.(*cert.Settings); !ok {
		return nil
	}
	return ca.Request(p.policies.Current().TrustDomain, cert.IssuingKey(p.dir()), p.csr())
}

// issuing waits until an operator has signed the certificate request.
func (p *process) issuing(ctx context.Context, s *cert.Settings) error {
	return p.wait(ctx, "the issuing certificate", func() error {
		if err := p.trusted(s); err != nil {
			return fmt.Errorf("%w: where the root's key is, run: %s", err, p.sign())
		}
		return nil
	})
}

func (p *process) csr() string { return filepath.Join(p.dir(), "issuing.csr") }

// sign returns the command with which an operator signs the issuing certificate.
func (p *process) sign() string {
	return fmt.Sprintf("ssh %s cat %s | florctl ca sign | ssh %[1]s %[3]s install-cert", p.policies.Current().Host, p.csr(), p.instance.Program("flor-provider"))
}

// trusted refuses an issuing certificate that hosts would refuse. It checks the certificate against
// the policy that was read at the start, and against a newer policy.
func (p *process) trusted(s *cert.Settings) error {
	a, err := s.Authority(p.dir())
	if err != nil {
		return err
	}
	if cert.Trusted(a, p.policies.Current()) == nil {
		return nil
	}
	if err := p.openPolicies(); err != nil {
		return err
	}
	return cert.Trusted(a, p.policies.Current())
}

// delivered waits until the SVID of this process has been delivered by activation.
func (p *process) delivered(ctx context.Context) error {
	return p.wait(ctx, "the SVID of this process", func() error {
		if _, err := p.identity(); err != nil {
			return fmt.Errorf("%w: flor activate delivers it", err)
		}
		return nil
	})
}

// identity reads the SVID of this process that was delivered by activation.
func (p *process) identity() (*tls.Certificate, error) {
	svid, err := hostdir.LoadSVID(p.Identity(p.kind), p.policies.Self().ID)
	if err != nil {
		return nil, err
	}
	if _, err := secretfile.ReadFile(filepath.Join(hostdir.Current(p.Identity(p.kind)), hostdir.FileKey)); err != nil {
		return nil, err
	}
	return &svid.Cert, nil
}

// wait calls a function repeatedly until the function returns no error. It logs the reason for
// waiting whenever the reason changes.
func (p *process) wait(ctx context.Context, what string, there func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var waits journal.Once
	for {
		err := there()
		if err == nil {
			return nil
		}
		if waits.News(err) {
			p.log.Warn("waiting for "+what, "reason", err)
			ready(fmt.Sprintf("waiting for %s: %v", what, err))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
