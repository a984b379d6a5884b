# Faults of an issuer whose pages a kind of provider serves on its hosts: the service that
# publishes them must lead there.
{
  kind,
  leads, # what the service that publishes them has, for that
  clean,
  t,
  lib,
}:
let
  inherit (builtins)
    any
    concatStringsSep
    elem
    head
    map
    match
    ;
  inherit (lib)
    answers
    fault
    named
    serviceOf
    show
    when
    ;
  provider = clean.providers.${kind};
  place = "providers.${kind}.issuer";
  issuer = serviceOf provider.issuer;

  # The provider serves its pages on the host, unless something else takes them there.
  pages =
    let
      service = t.services.${issuer};
    in
    when
      (
        issuer != null
        && t.services ? ${issuer}
        && service.hosts != [ ]
        && clean.services.${issuer}.upstream == ""
        && provider.hosts != [ ]
        && !any (h: elem h provider.hosts) service.hosts
      )
      [
        (fault {
          id = "FL028";
          place = "services.${issuer}";
          problem = "the pages of the issuer are where providers.${kind} is, not on";
          value = concatStringsSep ", " service.hosts;
          remedy = "write services.${issuer}.host = ${show (head provider.hosts)};";
        })
      ];
in
map (
  f:
  f
  // {
    remedy = "declare the pages of the issuer, services.${issuer} = { host = ${
      show (head (provider.hosts ++ [ "…" ]))
    }; ${leads} listenPort = ${
      if match "https.*" provider.issuer == null then "80" else "443"
    }; };";
  }
) (named place provider.issuer)
++ answers place provider.issuer
++ pages
