package credentials

import (
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// need returns a need that delivers files to a service and notifies units of a change.
func need(id, kind, of, files string, notify ...string) document.Need {
	n := document.Need{ID: id, Kind: kind, For: kit.ID(of), Deliver: document.Deliver{Files: map[string]document.File{}}}
	for f := range strings.FieldsSeq(files) {
		n.Deliver.Files[f] = document.File{}
	}
	n.OnChange = append(n.OnChange, notify...)
	return n
}

func TestFind(t *testing.T) {
	m := document.Manifest{Needs: []document.Need{
		need("cert-node", "cert", "node/notes", "key.pem"),
		need("cert-service-wiki", "cert", "service/wiki", "key.pem"),
		need("cert-user-wiki", "cert", "user/wiki", "key.pem"),
		need("config-documents", "config", "node/notes", ""),
		need("file-wiki-smtp-password", "file", "service/wiki", "smtp-password", "wiki-mail.service"),
		need("file-wiki-logo", "file", "service/wiki", "logo"),
		need("oidc-wiki", "oidc", "service/wiki", "client-id client-secret", "wiki.service", "proxy.service"),
		need("oidc-notes", "oidc", "service/ursula/notes", "client-id client-secret", "proxy.service"),
		need("mailbox-mta-in", "mailbox", "service/mta", "password"),
		need("mailbox-mta-out", "mailbox", "service/mta", "password"),
		need("cert-service-notes-x", "cert", "service/notes-x", "key.pem"),
	}}
	for _, c := range []struct{ unit, credential, want string }{
		{"wiki.service", "oidc_client-secret", "map[client-secret:oidc-wiki] false"},
		{"wiki.service", "oidc", "map[client-id:oidc-wiki client-secret:oidc-wiki] true"},
		{"wiki.service", "cert_key.pem", "map[key.pem:cert-service-wiki] false"},
		{"wiki.service", "file_smtp-password", "map[smtp-password:file-wiki-smtp-password] false"},
		{"wiki.service", "file", "map[logo:file-wiki-logo smtp-password:file-wiki-smtp-password] true"},
		{"wiki-mail.service", "oidc_client-id", "map[client-id:oidc-wiki] false"},
		{"proxy.service", "cert_key.pem", "map[key.pem:cert-service-wiki] false"},
		{"proxy.service", "oidc_client-id", "oidc-wiki and oidc-notes of it both deliver client-id: the unit belongs to several services (notes, wiki)"},
		{"mta.service", "mailbox-out_password", "map[password:mailbox-mta-out] false"},
		{"mta.service", "mailbox-in", "map[password:mailbox-mta-in] true"},
		{"mta.service", "mailbox_password", "mailbox-mta-in and mailbox-mta-out of it both deliver password: load that of one, such as mailbox-out_password"},
		{"notes.service", "oidc", "map[client-id:oidc-notes client-secret:oidc-notes] true"},
		{"notes.service", "cert_key.pem", "notes.service has no such credential, it has oidc_client-id, oidc_client-secret"},
		{"wiki.socket", "cert_key.pem", "nothing is delivered for wiki.socket on this host: no service has its name, and no need notifies it of a change"},
		{"node.service", "cert_key.pem", "nothing is delivered for node.service on this host: no service has its name, and no need notifies it of a change"},
	} {
		f, err := Find(m, c.unit, c.credential)
		got := fmt.Sprint(f.files, f.whole)
		if err != nil {
			got = err.Error()
		}
		if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(c.want, " ", "") {
			t.Errorf("%s %s: got %s, want %s", c.unit, c.credential, got, c.want)
		}
	}
}
