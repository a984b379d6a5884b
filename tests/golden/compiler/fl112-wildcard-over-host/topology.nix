# shell.beta.golden.flor.rete is beta's own of shell.
{ base, merge, ... }:
merge base { services.wiki.aliases = [ "*.beta" ]; }
