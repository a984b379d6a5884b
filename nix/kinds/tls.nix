# Certificates for public names (ACME, RFC 8555), for hosts with an ingress.
let
  inherit (builtins)
    any
    attrNames
    attrValues
    concatMap
    concatStringsSep
    filter
    groupBy
    length
    ;
  inherit (import ../language/types)
    atMost
    default
    enum
    of
    ;
  inherit (import ../language/formats)
    acmeDirectory
    flag
    tlsName
    word
    ;
  inherit (import ../lib) isInvalid sorted when;
  inherit (import ../resolve/publicnames.nix) isInternal isWild onHosts;

  inherit ((import ../lib/constants.nix).spiffe) labelPattern;

  # Domains, also of one label: "internal".
  domain = word {
    want = "a lower-case DNS name";
    hint = "write for example \"internal\" or \"home.arpa\"";
    example = "internal";
    re = "${labelPattern}(\\.${labelPattern})*";
    most = 240;
  };
  contact = word {
    want = "a mail address";
    hint = "write for example \"admin@example.org\"";
    example = "admin@example.org";
    re = "[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+";
    most = 254;
  };
in
{
  doc = "Orders certificates for public names, for the hosts that take in strangers.";
  port = 9;
  alone = "each would order the same certificates, and names that several hosts have would have several keys";
  operated = true;
  settings = {
    directory =
      default
        "URL of the directory of the ACME server."
        "https://acme-v02.api.letsencrypt.org/directory"
        acmeDirectory;
    contact = of "Mail address to which the CA writes." contact;
    dns =
      of
        "How DNS-01 changes the zone, with lego: `httpreq`, by an HTTP service; `exec`, by a program. Their environment is in the provider's settings. `none`: HTTP-01 at the ingress."
        (enum [
          "none"
          "exec"
          "httpreq"
        ]);
    wildcards =
      of
        "Domains whose names share one certificate, such as `*.example.org`, so that public logs of certificates do not show each name. Needs `dns`."
        (atMost 16 tlsName);
    internal = default "Domains outside public DNS. A CA of the cluster issues certificates for their names: `florctl ca web`." [
      "internal"
      "home.arpa"
    ] (atMost 16 domain);
  };
  policy = t: {
    inherit (t.providers.tls) directory contact internal;
    dns = if t.providers.tls.dns == "none" then "" else t.providers.tls.dns;
  };

  service.grpc = of "The service speaks gRPC: an ingress passes HTTP/2 to it. Needs `tlsName`." flag;

  reasons = _: [ ];

  needs =
    t:
    let
      on = onHosts t;
      holders = groupBy (id: id) (concatMap attrNames (attrValues on));
    in
    host:
    let
      here = attrValues on.${host.name};
      challenged = t.providers.tls.dns == "none" && any (c: !c.internal) here;
    in
    when (t.providers.tls.hosts != [ ]) (
      when challenged [
        {
          id = "tls";
          for = host.id;
          request = {
            names = [ ];
            internal = false;
            shared = false;
          };
          files.thumbprint = {
            value = "thumbprint";
            mode = "0444";
          };
        }
      ]
      ++ map (c: {
        inherit (c) id what;
        for = host.id;
        request = {
          inherit (c) names internal;
          shared = length holders.${c.id} > 1;
        };
        files = {
          "fullchain.pem" = {
            value = "certificate";
            mode = "0444";
          };
          "key.pem" = {
            value = "key";
            mode = "0400";
          };
        };
        dependsOn = when (challenged && !c.internal) [ "tls" ];
        renew = {
          atPercent = 66;
          interval = 21600; # the CA may ask for an earlier renewal
        };
      }) here
    );

  label = need: need.id;

  check =
    {
      clean,
      lib,
      ...
    }:
    let
      inherit (lib)
        excluded
        fault
        faultIf
        show
        ;
      p = clean.providers.tls;
      provided = p.hosts != [ ];
      public = filter (d: !isInvalid d && !isInternal p d);
      withoutDNS =
        place: names:
        faultIf (provided && p.dns == "none" && names != [ ]) {
          id = "FL109";
          inherit place;
          problem = "no CA issues a wildcard by HTTP-01: found";
          value = concatStringsSep ", " (sorted names);
          remedy = "write providers.tls.dns = \"httpreq\"; or \"exec\", or take wildcards out";
        };
    in
    {
      top = withoutDNS "providers.tls.wildcards" (public p.wildcards);
      service =
        n: s:
        (
          if !s.grpc || s.tlsName != "" then
            [ ]
          else
            excluded "write tlsName = \"…\";, or take grpc out" "services.${n}.grpc" "no tlsName"
        )
        ++ (
          if s.tlsAliases == [ ] then
            [ ]
          else
            withoutDNS "services.${n}.tlsAliases" (public (filter isWild s.tlsAliases))
        );
      warnings.service =
        n: s:
        if !provided || s.visibility != "public" || s.tlsName != "" || s.publicPorts != { } || s.protocol == "udp" then
          [ ]
        else
          [
            (fault {
              id = "FL110";
              place = "services.${n}.visibility";
              problem = "an ingress takes in strangers by name, and the service has none: found";
              value = show s.visibility;
              remedy = "write services.${n}.tlsName = \"…\";, or acknowledge this where something else serves it";
            })
          ];
    };
}
