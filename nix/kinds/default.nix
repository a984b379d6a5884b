# The kinds of need. Each is one file here and one package below providers/; nothing else
# lists them. A kind is a set of:
#
#   doc        what its providers do, for people
#   port       of its process on a provider host: how far after hosts.<name>.providerPort
#   alone      why one host alone can provide it, since providers share no store; several may
#              without
#   apart      what several hosts that provide it do not have in common, for people; none without
#   operated   true where its process answers operators, through the one of kind config; else none
#   announced  true where its process answers whoever the forwarder announces, at a socket; else none
#   settings   attributes of providers.<kind>, besides those that all have
#   service    attributes of services.<name> that are about it; none without
#   entries    attributes of mkCluster that are sets of things with names, each { doc; type; on; shown; };
#              on: topology → host → the names of those that concern it; shown: what others read
#              of one in the exported topology; { } without
#   policy     topology → what its providers read of it; { } without
#   needs      topology with access → host → its needs of this kind, as needs.nix completes them
#   reasons    clean topology → why somebody must provide it, one text for each who needs it
#   label      need → what modules call it below the service that it is for; the kind without
#   check      what check/ has → faults { top; service = name: s: …; entries.<attribute> = name: e: …; }
#              and { warnings = …; } of the same form; none without
{
  cert = import ./cert.nix;
  config = import ./config.nix;
  database = import ./database.nix;
  federation = import ./federation.nix;
  file = import ./file.nix;
  git = import ./git.nix;
  jwt = import ./jwt.nix;
  oidc = import ./oidc.nix;
  secret = import ./secret.nix;
  tls = import ./tls.nix;
  token = import ./token.nix;
}
