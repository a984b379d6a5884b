// Package strictjson decodes JSON that is written by programs of ours: it refuses whatever two
// readers could understand in two ways.
package strictjson
