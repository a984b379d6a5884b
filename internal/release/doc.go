// Package release contains the version number of this release of Florete.
package release
