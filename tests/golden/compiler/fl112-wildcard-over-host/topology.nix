# shell.beta.golden.flor.rete is the name of shell on beta.
{ base, merge, ... }:
merge base { services.wiki.aliases = [ "*.beta" ]; }
