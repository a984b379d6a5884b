{ base, merge, ... }:
merge base {
  hosts.beta.users = [
    "ann"
    "bob"
  ];
  users.bob = { };
}
