// Package strictjson decodes JSON that was written by programs of this project. It refuses
// everything that two readers could interpret differently.
package strictjson
