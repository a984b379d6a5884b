{ base, merge, ... }:
merge base {
  users.bob = { };
}
