# Hosts with the same changes are listed together, and long lists are cut.
{
  base,
  merge,
  key,
}:
let
  numbers = builtins.genList (n: n + 10) 30;
  fleet =
    f:
    builtins.listToAttrs (
      map (n: {
        name = "h${toString n}";
        value = f n;
      }) numbers
    );
  many = merge base {
    hosts = fleet (n: {
      address = "192.0.2.${toString n}";
      sshHostKey = key "h${toString n}";
    });
  };
in
{
  before = many;
  after = merge many {
    serviceGroups.control-plane = [
      "auth"
      "wiki"
    ];
  };
}
