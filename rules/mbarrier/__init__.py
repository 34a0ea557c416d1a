"""Rules of family 1xx: mbarriers, their phases, arrivals and bytes."""
