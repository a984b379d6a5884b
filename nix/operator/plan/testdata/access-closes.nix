{ base, merge, ... }: {
  after = merge base {
    users.ann.roles = [ ];
    serviceGroups.control-plane = [ ];
  };
}
