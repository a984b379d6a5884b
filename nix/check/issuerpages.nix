# Faults of the service that publishes the pages of an issuer, which a kind of provider serves.
# `leads` says to which port it must lead.
# { clean, lib } -> { kind, leads, t } -> [Fault]
{ clean, lib }:
let
  inherit (builtins)
    any
    concatStringsSep
    elem
    head
    match
    ;
  inherit (lib)
    answers
    faultIf
    named
    serviceOf
    show
    ;
in
{
  kind,
  leads,
  t,
}:
let
  provider = clean.providers.${kind};
  place = "providers.${kind}.issuer";
  publishing = serviceOf provider.issuer;

  # The provider serves its pages on its own host, unless a proxy connects to it.
  away =
    let
      service = t.services.${publishing};
    in
    faultIf
      (
        publishing != null
        && t.services ? ${publishing}
        && service.hosts != [ ]
        && clean.services.${publishing}.upstream == ""
        && provider.hosts != [ ]
        && !any (h: elem h provider.hosts) service.hosts
      )
      {
        id = "FL028";
        place = "services.${publishing}";
        problem = "the pages of the issuer are where providers.${kind} is, not on";
        value = concatStringsSep ", " service.hosts;
        remedy = "write services.${publishing}.host = ${show (head provider.hosts)};";
      };
in
map (
  f:
  f
  // {
    remedy = "declare the pages of the issuer, services.${publishing} = { host = ${
      show (head (provider.hosts ++ [ "…" ]))
    }; ${leads} listenPort = ${
      if match "https.*" provider.issuer == null then "80" else "443"
    }; };";
  }
) (named place provider.issuer)
++ answers place provider.issuer
++ away
