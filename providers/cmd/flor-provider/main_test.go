package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/providertest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"flor-provider": main, "flor-provider_blue": main})
}

// TestScripts runs the stories in testdata/script. What florctl does there are
// commands of the script: root, sign, policy, publish.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: listen,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"root":   func(ts *testscript.TestScript, _ bool, _ []string) { ts.Check(root(ts.Getenv("WORK"))) },
			"sign":   func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(sign(ts.Getenv("WORK"), args...)) },
			"policy": func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(policy(ts.Getenv("WORK"), args)) },
			"publish": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(published(ts.Getenv("WORK"), args[0], args[1:]))
			},
			"ready":    heard,
			"call":     call,
			"wait-for": appears,
			"deliver": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(deliverKind(ts.Getenv("WORK"), args[0]))
			},
		},
	})
}

// deliverKind puts the SVID of the process of a kind where activation would.
func deliverKind(dir, kind string) error {
	r, err := ca.Load(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return err
	}
	service := spiffe.ProviderService(kind)
	(&kit.CA{Root: r, Issuing: r}).Deliver(filepath.Join(dir, "activation", "needs", "cert-service-"+service), kit.ID("service/drhorrible/"+service), time.Hour)
	return nil
}

// published writes published.json: documents of hosts, signed by the key that policies pin.
func published(dir, serial string, hosts []string) error {
	n, err := strconv.ParseInt(serial, 10, 64)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, "published.json"))
	if err != nil {
		return err
	}
	return errors.Join(providertest.Tree(signing, n, "", hosts...).Encode(f), f.Close())
}

// signing signs the documents of scripts.
var signing = kit.SigningKey("demo-1")

// root makes the root of the trust domain in dir.
func root(dir string) error {
	r, err := ca.NewRoot(kit.Domain, time.Now())
	if err != nil {
		return err
	}
	if err := ca.SaveKey(filepath.Join(dir, "ca.key"), r.Key); err != nil {
		return err
	}
	return ca.Save(filepath.Join(dir, "ca.crt"), ca.EncodeCertificates(r.Certificate))
}

// sign signs the issuing CA of the provider whose state is in dir/state; one that is old
// as it was signed before it had a name constraint.
func sign(dir string, old ...string) error {
	r, err := ca.Load(filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"))
	if err != nil {
		return err
	}
	csr, err := os.ReadFile(filepath.Join(dir, "state", "cert", "issuing.csr"))
	if err != nil {
		return err
	}
	c, err := r.SignIssuing(csr, ca.IssuingLifetime, time.Now())
	if err != nil {
		return err
	}
	if len(old) > 0 {
		t := *c
		t.PermittedURIDomains = nil
		c = kit.Sign(&t, c.PublicKey, r)
	}
	return ca.Save(filepath.Join(dir, "issuing.crt"), ca.EncodeCertificates(c))
}
