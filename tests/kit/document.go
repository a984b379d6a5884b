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

// Document returns an unsigned document with the given serial. The body is a document.Manifest or a
// document.Policy. Document replaces nil lists in the body by empty lists, because documents must
// not contain null.
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

// Signed returns a signed document in the form in which a config provider serves it. The body is a
// document.Manifest or a document.Policy.
func Signed(serial int64, body any, key signature.SecretKey) hostapi.SignedDocument {
	envelope, raw, _ := Document(serial, body).Bytes()
	sig := must(key.Sign(nil, document.SignedText(envelope)))
	return hostapi.SignedDocument{Envelope: string(envelope), Body: string(raw), Signature: sig.String()}
}

// Write writes the files of a document to a directory, and creates the directory if necessary.
func Write(dir string, d document.Document) {
	check(os.MkdirAll(dir, 0o755))
	check(d.Write(dir))
}

// Swap replaces all files in a directory at the same moment, as activation does. The directory is
// the target of a symbolic link. Swap writes the new files to a new directory, and then makes it
// the target of the link. The file with the private key can be read only by its owner.
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
