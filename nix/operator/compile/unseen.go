package compile

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// folders is a regular expression for the folders of a cluster whose files belong to its
// declaration (nix/language/folder.nix).
const folders = "clusters|federated|hostGroups|hosts|outside|providers|roles|secrets|serviceGroups|services|teams|tenants|users"

var (
	// belongs matches files that are parts of a cluster anywhere.
	belongs = regexp.MustCompile(`\.(nix|crt|pem|pub)$|(^|/)(flake\.lock|[^/._][^/]*\.json)$`)
	// inFolder matches files in one of the folders that are neither hidden nor excluded by their
	// names.
	inFolder = regexp.MustCompile(`^([^/]+/)*(` + folders + `)/([^/._][^/]*/)*[^/._][^/]*$`)
	// part matches the files in these folders that nix/language/folderfiles.nix reads or refuses.
	// Other files are not parts.
	part   = regexp.MustCompile(`/([^/.]*[a-z][^/.]*|#[^/]*\.(nix|json)#|[^/]*\.((nix|json)[^/]*|(?i:ya?ml|toml|hujson|dhall|ncl|cue|csv|txt|bak|orig|old|n.?x|ni.|nxi|js.?.?|jo?n.?|j?son.?)))$`)
	readme = regexp.MustCompile(`/README[^/]*$`)
	// topFile matches a file that replaces one of the folders.
	topFile = regexp.MustCompile(`^(acknowledge|cluster|expect|rollout|trust|` + folders + `)\.(nix|json)$`)
)

// isPart reports whether a file in one of the folders belongs to the cluster's declaration, judging
// by its name.
func isPart(file string) bool {
	return inFolder.MatchString(file) && part.MatchString(file) && !readme.MatchString(file)
}

// Unseen returns the files of the cluster that Nix does not read because git does not track them. A
// file that git ignores is included only if it is in a folder of the cluster.
func (s Source) Unseen(ctx context.Context) []string {
	unseen := slices.DeleteFunc(s.listFiles(ctx, "--others", "--exclude-standard"), func(f string) bool {
		return !belongs.MatchString(f) && !isPart(f)
	})
	ignored := slices.DeleteFunc(s.listFiles(ctx, "--others", "--ignored", "--exclude-standard", "--directory"), func(f string) bool {
		return !topFile.MatchString(f) && !isPart(f) && !inFolder.MatchString(f+"x")
	})
	all := append(unseen, ignored...)
	slices.Sort(all)
	return slices.DeleteFunc(all, func(f string) bool {
		within := func(other string) bool { return other != f && strings.HasPrefix(other, f) }
		return strings.HasSuffix(f, "/") && slices.ContainsFunc(all, within)
	})
}

// Submodules returns the folders of the flake that are git submodules and that Nix does not read.
// If the flake reference says that Nix reads submodules, the list is empty.
func (s Source) Submodules(ctx context.Context) (folders []string) {
	if strings.Contains(s.ref(), "submodules=1") {
		return nil
	}
	for _, entry := range s.listFiles(ctx, "--stage") {
		// 160000 is the mode of a commit of another repository.
		if about, path, found := strings.Cut(entry, "\t"); found && strings.HasPrefix(about, "160000 ") {
			folders = append(folders, path)
		}
	}
	return folders
}

// listFiles returns the files that git ls-files lists in the flake's folder. If git fails, it
// returns none.
func (s Source) listFiles(ctx context.Context, args ...string) []string {
	out, err := git(ctx, s.dir(), append([]string{"ls-files", "-z"}, args...)...)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Split(out, "\x00"), func(f string) bool { return f == "" })
}
