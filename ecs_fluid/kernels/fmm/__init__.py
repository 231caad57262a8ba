"""The fast multipole method for regularised vortons."""
