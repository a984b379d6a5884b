package doctor_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/agent/doctor"
	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func TestSSH(t *testing.T) {
	ca, dir := kit.NewCA(), t.TempDir()
	client, server := filepath.Join(dir, "ssh_config.d/florete.conf"), filepath.Join(dir, "sshd_config.d/florete.conf")
	for _, file := range []string{client, server} {
		if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(file, text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := agenttest.NewHost(t, "laptop", ca)
	c := sshlogin.Config{Layout: h.Layout, Program: "/opt/flor", TrustDomain: kit.Domain, Penalties: sshlogin.Penalties(t.Context())}
	check := func(step string, fixes ...string) {
		t.Helper()
		r := doctor.Run(t.Context(), doctor.Config{Layout: h.Layout, Socket: h.Socket(), SSH: dir})
		i := slices.IndexFunc(r.Checks, func(c doctor.Check) bool { return c.Name == "ssh" })
		var found []string
		for _, f := range r.Checks[i].Findings {
			found = append(found, f.Fix)
		}
		if !slices.Equal(found, fixes) {
			t.Errorf("%s: %+v, want %q", step, r.Checks[i], fixes)
		}
	}
	h.Accept(document.Forwarder{})
	check("no need and no login")
	fixClient, fixServer := "flor ssh client-config > "+client, "flor ssh server-config > "+server+" && systemctl reload ssh"
	need := kit.CertNeed(kit.ID("user/alice"), "forge")
	need.ID, need.Kind, need.Request = sshlogin.NeedUser+"alice", document.KindSSH, kit.JSON(document.SSHRequest{ID: kit.ID("user/alice")})
	h.Needs = []document.Need{need}
	shell := document.Published{ID: kit.ID("service/shell"), Upstream: "127.0.0.1:22", Allow: []document.Allow{
		{ID: kit.ID("user/alice"), Logins: []document.Login{{Account: "deploy"}}},
	}}
	h.Accept(document.Forwarder{Publish: []document.Published{shell}})
	check("none", fixClient, fixServer)
	write(client, c.Client())
	check("none for sshd", fixServer)
	write(server, strings.Replace(c.Server(), "127.0.0.0/8", "0.0.0.0/0", 1))
	check("other addresses", fixServer)
	write(server, c.Server())
	check("both")
	write(client, strings.Replace(c.Client(), kit.Domain, "other.flor", 1))
	check("another trust domain", fixClient)
	os.Remove(client)
	write(filepath.Join(dir, "ssh_config"), "Host *\n\n"+c.Client())
	check("in the file of a distribution")
	recorded := shell
	recorded.Remote, recorded.Record = document.RemoteSSH, &document.Record{Recipients: []string{"age1mwhd2alkrwmr30mlqcnkysyhtpej5h44l8lavhntqpmsspq4p9hqks76mt"}, Days: 90}
	h.Accept(document.Forwarder{Publish: []document.Published{recorded}})
	check("sessions are recorded from now on", fixServer)
	c.Recorded = true
	write(server, c.Server())
	check("only certificates log in")
}
