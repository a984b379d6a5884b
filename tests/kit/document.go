package kit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// Document returns an unsigned document. The argument body is a manifest or a policy. Lists that
// are nil become empty lists, because documents must not contain null.
func Document(serial int64, body any) document.Document {
	raw := bytes.ReplaceAll(JSON(body), []byte(":null"), []byte(":[]"))
	e := document.Envelope{Schema: document.EnvelopeSchema, Format: document.NewestFormat, Digest: document.Digest(raw), Serial: serial, Rev: "8eeec93"}
	switch b := body.(type) {
	case document.Manifest:
		e.Kind, e.Cluster, e.Host = document.DocManifest, b.Cluster, b.Host
	case document.Policy:
		e.Kind, e.Cluster, e.Host = document.DocPolicy, b.Cluster, b.Host
	default:
		panic(fmt.Sprintf("no document has a body of type %T", body))
	}
	return must(document.Open(JSON(e), raw, ""))
}

// Signed returns a signed document in the form in which a config provider serves it. The argument
// body is a manifest or a policy.
func Signed(serial int64, body any, key signature.SecretKey) hostapi.SignedDocument {
	envelope, raw, _ := Document(serial, body).Bytes()
	sig := must(key.Sign(nil, document.SignedText(envelope)))
	return hostapi.SignedDocument{Envelope: string(envelope), Body: string(raw), Signature: sig.String()}
}

// Write creates a directory and writes the files of a document into it.
func Write(dir string, d document.Document) {
	check(os.MkdirAll(dir, 0o755))
	check(d.Write(dir))
}

// Swap replaces the files in the directory to which the symbolic link leads, in the same way as
// activation does. It writes the new files to a new directory beside the link, and then points the
// link at that directory. A private key is written so that only its owner can read it.
func Swap(link string, files map[string][]byte) {
	check(os.MkdirAll(filepath.Dir(link), 0o755))
	dir := must(os.MkdirTemp(filepath.Dir(link), "gen-"))
	check(os.Chmod(dir, 0o755))
	for name, b := range files {
		mode := os.FileMode(0o444)
		if name == hostdir.FileKey {
			mode = 0o400
		}
		check(os.WriteFile(filepath.Join(dir, name), b, mode))
	}
	check(atomicfile.Symlink(filepath.Base(dir), link))
}
