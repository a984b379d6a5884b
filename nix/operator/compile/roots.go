package compile

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/trust"
)

// CheckRootsKept returns an error if the cluster keeps none of its earlier roots. The arguments are
// the earlier and the new roots, in PEM. Hosts trust only the earlier roots until they receive new
// documents. They would reject all providers, and would therefore never receive any. If there were
// no earlier roots, CheckRootsKept returns nil.
func CheckRootsKept(was, is []string) error {
	return CheckFingerprintsKept(Fingerprints(was), Fingerprints(is))
}

// Fingerprints returns the fingerprints of all certificates in the given PEM texts.
func Fingerprints(texts []string) (all []string) {
	for _, text := range texts {
		for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
			sum := sha256.Sum256(block.Bytes)
			all = append(all, hex.EncodeToString(sum[:]))
		}
	}
	return all
}

// CheckFingerprintsKept is like CheckRootsKept, but its arguments are fingerprints of roots.
func CheckFingerprintsKept(was, is []string) error {
	if len(was) == 0 || slices.ContainsFunc(was, func(f string) bool { return slices.Contains(is, f) }) {
		return nil
	}
	var short []string
	for _, f := range was {
		short = append(short, f[:min(16, len(f))])
	}
	return fmt.Errorf("trust.roots has none of the roots that hosts trust, %s: keep the present root there beside the next root until the present root is retired: florctl ca rotate", strings.Join(short, ", "))
}

// CheckRoots returns the faults of a trust domain's roots, for example that a root has expired at
// the time now. Each string in roots contains one or more certificates in PEM.
func CheckRoots(roots []string, trustDomain string, now time.Time) []Fault {
	var faults []Fault
	for i, text := range roots {
		if text == "" { // reported already
			continue
		}
		refuse := func(id, problem, value, remedy string) {
			faults = append(faults, Fault{id, "error", fmt.Sprintf("trust.roots[%d]", i), problem, value, remedy})
		}
		certificates, err := trust.ParseCertificates([]byte(text))
		if err != nil {
			refuse("FL050", "not a certificate:", err.Error(), "write the ca.crt that florctl ca init made")
		}
		for _, c := range certificates {
			switch day := time.DateOnly; {
			case now.After(c.NotAfter):
				refuse("FL051", "the certificate expired on", c.NotAfter.Format(day), "make a new root with florctl ca init, and list both while hosts change over")
			case now.Before(c.NotBefore):
				refuse("FL052", "the certificate is not valid before", c.NotBefore.Format(day), "look at this machine's clock, or list it later")
			}
			if !now.After(c.NotAfter) && trust.RootEnds(c, now) {
				faults = append(faults, Fault{"FL056", "warning", fmt.Sprintf("trust.roots[%d]", i), "the certificate ends on", c.NotAfter.Format(time.DateOnly),
					"replace it step by step with florctl ca rotate"})
			}
			if err := pubkey.Check(c.PublicKey); err != nil {
				refuse("FL057", "no host trusts the certificate:", err.Error(), "make a new root with florctl ca init")
			}
			if !c.BasicConstraintsValid || !c.IsCA || c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0 {
				refuse("FL053", "no certificate authority:", fmt.Sprintf("%q", c.Subject.String()), "write the ca.crt that florctl ca init made")
			}
			domains := slices.Clone(c.PermittedURIDomains)
			for _, u := range c.URIs {
				if u.Scheme == "spiffe" {
					domains = append(domains, u.Host)
				}
			}
			if i := slices.IndexFunc(domains, func(d string) bool { return d != trustDomain }); i >= 0 && trustDomain != "" {
				refuse("FL054", "the certificate is of trust domain", fmt.Sprintf("%q", domains[i]),
					fmt.Sprintf("make one with florctl ca init --trust-domain %s", trustDomain))
			}
		}
	}
	return faults
}
