package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/florete/florete/agent/recorder"
	"github.com/florete/florete/agent/sshlogin"
	"github.com/florete/florete/internal/document"
)

// ssh checks that ssh and sshd have the configuration of package sshlogin, if the manifest has
// certificates for users of this host, or logins at its services.
func (h *host) ssh(ctx context.Context) (string, []Finding) {
	certificates := 0
	for _, n := range h.manifest.Needs {
		if n.Kind == document.KindSSH && strings.HasPrefix(n.ID, sshlogin.NeedUser) {
			certificates++
		}
	}
	callers := 0
	for _, p := range h.manifest.Forwarder.Publish {
		for _, a := range p.Allow {
			if len(a.Logins) > 0 {
				callers++
			}
		}
	}
	c := sshlogin.Config{Instance: h.Instance, Layout: h.Layout, TrustDomain: h.manifest.TrustDomain, Recorded: sshlogin.Records(h.manifest), Penalties: sshlogin.Penalties(ctx)}
	var found []Finding
	if certificates > 0 {
		found = append(found, h.configures("ssh", "client-config", "", c, sshlogin.Config.Client)...)
	}
	if callers > 0 {
		found = append(found, h.configures("sshd", "server-config", " && systemctl reload ssh", c, sshlogin.Config.Server)...)
	}
	if c.Recorded {
		if err := recorder.Room(string(h.Layout), recorder.DefaultReserve); err != nil {
			found = append(found, fix("nobody can log in, since sessions cannot be recorded: "+err.Error(), "df -h "+string(h.Layout)))
		}
	}
	return fmt.Sprintf("%d users with certificates, %d with logins here", certificates, callers), found
}

// configures checks that the main configuration of a program, or a file beside it, contains a
// configuration. The path of flor in it may be any. The argument command is the command of flor ssh
// that prints the configuration, and then follows it in the remedy.
func (h *host) configures(program, command, then string, c sshlogin.Config, want func(sshlogin.Config) string) []Finding {
	file := filepath.Join(h.SSH, program+"_config.d", h.Instance.String()+".conf")
	problem := fmt.Sprintf("%s has no configuration for logins with certificates in %s", program, file)
	for _, path := range []string{file, filepath.Join(h.SSH, program+"_config")} {
		b, err := os.ReadFile(path)
		if c.Program = sshlogin.ProgramIn(string(b)); err != nil || c.Program == "" {
			continue
		}
		if strings.Contains(string(b), want(c)) {
			return nil
		}
		problem = fmt.Sprintf("%s does not have the configuration that %s ssh %s prints", path, h.Instance.Program("flor"), command)
		break
	}
	return []Finding{fix(problem, fmt.Sprintf("%s ssh %s > %s%s", h.Instance.Program("flor"), command, file, then))}
}
