# Secrets and their readers.
let
  inherit (builtins)
    all
    attrValues
    concatLists
    concatMap
    elem
    elemAt
    filter
    genList
    groupBy
    length
    ;
in
rec {
  # The number of characters of secrets that are text. Other secrets are key pairs.
  texts = {
    hex = 64;
    password = 32;
  };

  # The ways in which a reader is written: one, if it is right.
  # written :: Reader -> [String]
  written =
    r:
    filter
      (
        w:
        !elem r.${w} [
          ""
          [ ]
        ]
      )
      [
        "service"
        "host"
        "group"
        "tags"
      ];

  # The hosts of a reader. A wrong reader has none.
  # hosts :: Topology -> Reader -> [hostName]
  hosts =
    t: r:
    let
      where = is: map (h: h.name) (filter is (attrValues t.hosts));
    in
    if r.service != "" then
      t.services.${r.service}.hosts or [ ]
    else if r.host != "" then
      (if t.hosts ? ${r.host} then [ r.host ] else [ ])
    else if r.group != "" then
      where (h: elem r.group (t.outward h.group))
    else if r.tags != [ ] then
      where (h: all (tag: elem tag h.tags) r.tags)
    else
      [ ];

  # The readers of secrets by host, one entry for each host of a reader.
  # onHosts :: Topology -> { hostName = [{ host, reader, secret, place }]; }
  onHosts =
    t:
    groupBy (r: r.host.name) (
      concatMap (
        s:
        concatLists (
          genList (
            i:
            let
              r = elemAt s.readers i;
              at = host: {
                host = t.hosts.${host};
                reader = r;
                secret = s;
                place = "secrets.${s.name}.readers[${toString i}]";
              };
            in
            map at (hosts t r)
          ) (length s.readers)
        )
      ) (attrValues t.secrets)
    );
}
